use super::*;
use crate::child::{Answer, Verdict};

fn answered(outward: &Outward, bytes: usize) -> Arc<EventStream> {
    let stream = outward.open_request(1);
    stream.finish(Answer {
        body: Bytes::from(vec![b' '; bytes]),
        verdict: Verdict::Result,
    });
    stream
}

fn is_kept(outward: &Outward, stream: &EventStream) -> bool {
    outward.resume(Some(&format!("{}-0", stream.id()))).is_some()
}

#[test]
fn answers_that_nobody_read_outlive_those_that_were_read() {
    let outward = Outward::new();
    let unread: Vec<_> = (0..10 * MAX_READ).map(|_| answered(&outward, 2)).collect();
    for _ in 0..3 * MAX_READ {
        let read = answered(&outward, 2);
        assert!(read.read_after(None).try_next().is_some());
    }
    let kept = outward.lock().streams.len();
    assert!(kept <= unread.len() + MAX_READ + 1, "{kept}");
    assert!(unread.iter().all(|stream| is_kept(&outward, stream)));
}

#[test]
fn unread_answers_are_kept_up_to_a_size_and_the_newest_always() {
    let outward = Outward::new();
    let first = answered(&outward, 1);
    let large = answered(&outward, 2 * MAX_UNREAD_BYTES);
    let opened = outward.open_request(1);
    assert!(!is_kept(&outward, &first) && is_kept(&outward, &large));
    answered(&outward, 1);
    let second = outward.open_request(1);
    assert!(!is_kept(&outward, &large));
    assert!([opened, second].iter().all(|open| is_kept(&outward, open)));
    let bytes = MAX_UNREAD_BYTES / 64;
    for _ in 0..100 {
        answered(&outward, bytes);
    }
    let kept = outward.lock().streams.len();
    assert!(kept <= 64 + 3, "{kept}");
}
