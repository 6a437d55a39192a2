use std::time::Instant;

use super::*;

fn hub() -> Arc<Hub> {
    let hub = Arc::new(Hub::default());
    hub.join(1, Weak::new());
    hub.join(2, Weak::new());
    hub
}

#[test]
fn a_resource_is_unsubscribed_by_its_last_subscriber() {
    let hub = hub();
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
    assert!(hub.subscriptions.lock().is_empty());
}

#[test]
fn a_subscription_lasts_only_if_it_is_granted() {
    let hub = hub();
    drop(hub.claim(1, "refused"));
    assert!(hub.subscriptions.lock().is_empty());
    let granted = hub.claim(1, "granted");
    // The second client does not take the first one's away.
    drop(hub.claim(1, "granted"));
    granted.granted();
    drop(hub.claim(1, "granted"));
    assert!(hub.subscriptions.lock().contains(1, "granted"));
    let late = hub.claim(1, "late");
    hub.leave(1);
    late.granted();
    assert!(hub.subscriptions.lock().is_empty());
}

#[test]
fn subscriptions_are_few_and_short() {
    let hub = hub();
    assert!(hub.refuses(1, &"x".repeat(MAX_URI_BYTES)).is_none());
    assert!(hub.refuses(1, &"x".repeat(MAX_URI_BYTES + 1)).is_some());
    for number in 0..MAX_SUBSCRIPTIONS {
        let uri = number.to_string();
        assert!(hub.refuses(1, &uri).is_none());
        hub.subscribe(1, &uri);
    }
    assert!(hub.refuses(1, "one more").is_some());
    assert!(hub.refuses(1, "0").is_none(), "it is there already");
    assert!(hub.refuses(2, "one more").is_none(), "others have their own");
}

#[test]
fn places_are_given_back() {
    let hub = hub();
    for number in 0..MAX_SUBSCRIPTIONS {
        // Twice is once.
        hub.subscribe(1, &number.to_string());
        hub.subscribe(1, &number.to_string());
    }
    hub.unsubscribe(1, "unknown");
    hub.unsubscribe(2, "0");
    assert!(hub.refuses(1, "one more").is_some());
    hub.unsubscribe(1, "0");
    hub.unsubscribe(1, "0");
    assert!(hub.refuses(1, "one more").is_none());
    hub.subscribe(1, "one more");
    assert!(hub.refuses(1, "and another").is_some());
    hub.leave(1);
    hub.join(1, Weak::new());
    assert!(hub.refuses(1, "and another").is_none());
    assert!(hub.subscriptions.lock().is_empty());
}

#[test]
fn whether_a_session_may_subscribe_does_not_depend_on_the_others() {
    let hub = hub();
    for owner in 2..52 {
        hub.join(owner, Weak::new());
        for number in 0..MAX_SUBSCRIPTIONS {
            hub.subscribe(owner, &format!("{owner}/{number}"));
        }
    }
    // Minutes, if each looked at all there are.
    let start = Instant::now();
    for _ in 0..50_000 {
        assert!(hub.refuses(2, "one more").is_some());
        assert!(start.elapsed() < test_support::TEST_TIMEOUT, "it is not over");
    }
}
