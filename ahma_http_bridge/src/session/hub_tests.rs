use super::*;

#[test]
fn a_resource_is_unsubscribed_by_its_last_subscriber() {
    let hub = Hub::default();
    hub.subscribe(1, "a");
    hub.subscribe(2, "a");
    hub.subscribe(2, "b");
    assert_eq!(hub.unsubscribe(1, "a"), Unsubscribe::AnswerHere);
    assert_eq!(
        hub.unsubscribe(1, "a"),
        Unsubscribe::AnswerHere,
        "a second time changes nothing"
    );
    assert_eq!(hub.unsubscribe(1, "unknown"), Unsubscribe::PassOn);
    let mut orphaned = hub.leave(2);
    orphaned.sort();
    assert_eq!(orphaned, ["a".into(), "b".into()]);
    assert!(hub.subscribers().is_empty());
}
