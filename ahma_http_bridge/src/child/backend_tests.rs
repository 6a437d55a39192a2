use super::*;

#[test]
fn starts_in_a_row_are_spaced_out_and_forgotten() {
    let mut attempts = Attempts::default();
    let mut now = Instant::now();
    assert_eq!(attempts.delay(now), Duration::ZERO);
    let mut delays = Vec::new();
    for _ in 0..12 {
        let delay = attempts.delay(now);
        delays.push(delay.as_millis());
        now += delay;
        attempts.begin(now);
    }
    // Waiting for the next start is not life: it goes on as it began, up to the longest delay.
    assert_eq!(
        delays,
        [0, 0, 100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000, 10_000]
    );
    attempts.failed();
    assert_eq!(
        attempts.delay(now + Duration::from_secs(1)),
        Duration::from_secs(9)
    );
    attempts.begin(now + Duration::from_secs(60));
    assert!(attempts.in_a_row > 1, "a slow failure is no life either");

    now += Duration::from_secs(120);
    assert_eq!(attempts.delay(now), Duration::ZERO);
    attempts.begin(now);
    assert_eq!(attempts.in_a_row, 1);
}

#[test]
fn the_bridges_own_initialize_is_a_message() {
    let text = own_initialize();
    let envelope = Envelope::parse(text.as_bytes()).unwrap();
    assert_eq!(envelope.method(), Some("initialize"));
}
