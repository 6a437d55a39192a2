use super::*;

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

#[test]
fn a_message_waits_for_changes_to_settle_and_for_its_turn() {
    let start = Instant::now();
    let pace = Pace {
        interval: ms(200),
        heartbeat: Some(ms(10_000)),
        is_behind: false,
    };
    // (last message, first change since, when the next message is due)
    for (last_sent, changed_at, due) in [
        (None, None, 10_000),
        (None, Some(3), 13),
        (Some(13), None, 10_013),
        (Some(13), Some(14), 213),
        (Some(13), Some(210), 220),
        (Some(13), Some(10_010), 10_013),
    ] {
        let at = |milliseconds: Option<u64>| milliseconds.map(|milliseconds| start + ms(milliseconds));
        let pacer = Pacer {
            started: start,
            last_sent: at(last_sent),
            changed_at: at(changed_at),
        };
        assert_eq!(
            pacer.due(&pace).map(|due| due - start),
            Some(ms(due)),
            "{last_sent:?} {changed_at:?}"
        );
    }
}

#[test]
fn without_news_only_a_sink_that_is_behind_sends() {
    let start = Instant::now();
    let quiet = Pace {
        interval: ms(50),
        ..Pace::default()
    };
    let behind = Pace {
        is_behind: true,
        ..quiet
    };
    let mut pacer = Pacer::new(start);
    assert_eq!((pacer.due(&quiet), pacer.due(&behind)), (None, Some(start)));
    pacer.last_sent = Some(start);
    assert_eq!(
        (pacer.due(&quiet), pacer.due(&behind)),
        (None, Some(start + ms(50)))
    );
}

#[tokio::test(start_paused = true)]
async fn work_without_sinks_is_only_awaited() {
    let work = async {
        tokio::time::sleep(ms(100)).await;
        "done"
    };
    assert_eq!(Watcher::new(&[]).during(work).await, "done");
}
