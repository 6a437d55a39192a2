use super::*;

#[test]
fn first_come_first_served() {
    let mut queue = Queue::new(2, 10);
    assert_eq!([0, 1, 2, 3, 4].map(|ticket| queue.enter(ticket)), {
        use QueueAdmission::{Run, Wait};
        [Run, Run, Wait, Wait, Wait]
    });
    assert_eq!(
        [0, 1, 2, 3, 4].map(|ticket| queue.position(ticket)),
        [None, None, Some(1), Some(2), Some(3)]
    );
    assert_eq!(queue.leave(), Some(2));
    assert_eq!(queue.position(4), Some(2));
    assert_eq!(queue.leave(), Some(3));
    assert_eq!(queue.leave(), Some(4));
    assert_eq!((queue.leave(), queue.leave()), (None, None));
    assert_eq!([5, 6, 7].map(|ticket| queue.enter(ticket)), {
        use QueueAdmission::{Run, Wait};
        [Run, Run, Wait]
    });
}

#[test]
fn a_ticket_that_is_given_up_is_skipped() {
    let mut queue = Queue::new(1, 10);
    for ticket in 0..4 {
        queue.enter(ticket);
    }
    assert!(queue.abandon(2));
    assert!(!queue.abandon(2), "gave up already");
    assert!(!queue.abandon(0), "runs already");
    assert_eq!(queue.position(3), Some(2));
    assert_eq!(
        [queue.leave(), queue.leave(), queue.leave()],
        [Some(1), Some(3), None]
    );
}

#[test]
fn the_queue_is_bounded() {
    let mut queue = Queue::new(1, 2);
    assert_eq!([0, 1, 2, 3].map(|ticket| queue.enter(ticket)), {
        use QueueAdmission::{Refused, Run, Wait};
        [Run, Wait, Wait, Refused]
    });
    assert_eq!(queue.waiting(), 2);
    queue.leave();
    assert_eq!(queue.enter(4), QueueAdmission::Wait);
}

#[test]
fn there_is_always_one_place() {
    assert_eq!(Queue::new(0, 0).enter(0), QueueAdmission::Run);
}
