use super::*;

#[test]
fn starts_in_a_row_are_spaced_out_and_forgotten() {
    let mut attempts = Attempts::default();
    let mut now = Instant::now();
    assert_eq!(attempts.delay(now), Duration::ZERO);
    let mut delays = Vec::new();
    for _ in 0..10 {
        let delay = attempts.delay(now);
        delays.push(delay.as_millis());
        now += delay;
        attempts.begin(now);
    }
    assert_eq!(delays[..6], [0, 0, 100, 200, 400, 800]);
    assert!(delays.iter().all(|delay| *delay <= MAX_DELAY.as_millis()));
    now += Duration::from_secs(60);
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
