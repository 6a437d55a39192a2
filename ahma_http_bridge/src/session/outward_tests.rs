use super::*;
use crate::child::{Answer, Verdict};

fn finish(stream: &EventStream) {
    stream.finish(Answer {
        body: Bytes::from_static(b"{}"),
        verdict: Verdict::Result,
    });
}

#[test]
fn an_answer_that_nobody_read_outlives_those_that_were_read() {
    let outward = Outward::new();
    let unread = outward.open_request(1);
    finish(&unread);
    for _ in 0..3 * MAX_FINISHED {
        let read = outward.open_request(1);
        finish(&read);
        assert!(read.read_after(None).try_next().is_some());
    }
    let kept = outward.lock().streams.len();
    assert!(kept <= MAX_FINISHED + 1, "{kept}");
    assert!(outward.resume(Some(&format!("{}-0", unread.id()))).is_some());
}
