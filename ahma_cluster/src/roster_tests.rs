use super::*;

const LEASE: Duration = Duration::from_secs(15);

fn beat(worker: &str, catalog: &str) -> Beat {
    Beat {
        worker: worker.to_owned(),
        catalog: catalog.to_owned(),
        ..Beat::default()
    }
}

#[test]
fn a_worker_is_lost_after_a_lease_of_silence_that_we_heard() {
    let start = Instant::now();
    let at = |seconds| start + Duration::from_secs(seconds);
    let mut roster = Roster::new(LEASE, start);
    roster.take(beat("w1", "a"), at(2));
    assert!(!roster.has_lost("w1", at(1), at(17)));
    assert!(roster.has_lost("w1", at(1), at(18)));
    // Its claim was noticed after its last beat.
    assert!(!roster.has_lost("w1", at(10), at(25)));
    // One that was never heard of.
    assert!(!roster.has_lost("w2", at(3), at(18)));
    assert!(roster.has_lost("w2", at(3), at(19)));
    // While we were not connected no worker could be heard.
    roster.was_deaf(at(30));
    assert!(!roster.has_lost("w1", at(1), at(45)));
    assert!(roster.has_lost("w1", at(1), at(46)));
}

#[test]
fn new_tools_and_workers_are_news_and_silence_is_forgotten() {
    let start = Instant::now();
    let mut roster = Roster::new(LEASE, start);
    assert!(roster.take(beat("w1", "a"), start));
    assert!(!roster.take(beat("w1", "a"), start));
    assert!(roster.take(beat("w1", "b"), start));
    assert!(roster.take(beat("w2", "b"), start));
    assert!(!roster.forget_silent(start + LEASE));
    assert!(roster.forget_silent(start + LEASE + Duration::from_secs(1)));
    assert_eq!(roster.workers(), Vec::<&Beat>::new());
}
