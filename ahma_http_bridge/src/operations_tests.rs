use std::time::Duration;

use super::*;
use crate::activity::Uses;
use crate::redact::Redactor;

fn operations() -> (OpenOperations, Arc<OperationRecorder>) {
    let audit = Arc::new(Audit::to_log(Arc::new(Redactor::new())));
    let recorder = Arc::new(OperationRecorder::new(audit));
    (OpenOperations::new(Arc::clone(&recorder)), recorder)
}

fn news(event: &str, id: &str, status: &str) -> Value {
    json!({ "event": event, "operation": { "id": id, "tool": "build", "status": status, "duration_ms": 20 } })
}

#[test]
fn what_has_a_place_runs_and_what_waits_is_queued() {
    let (open, recorder) = operations();
    for (event, id, status, queued, running) in [
        ("queued", "op_1", "queued", 1, 0),
        ("started", "op_2", "running", 1, 1),
        ("started", "op_1", "running", 0, 2),
        ("ended", "op_1", "completed", 0, 1),
        ("ended", "op_3", "failed", 0, 1),
        ("ended", "op_2", "completed", 0, 0),
    ] {
        open.hear(&news(event, id, status), OperationOwner::default);
        assert_eq!(open.count(), OperationCount { queued, running }, "{event} {id}");
    }
    let ended = recorder.ended.lock();
    let ids: Vec<_> = ended.iter().map(|known| known.report.id.as_str()).collect();
    assert_eq!(ids, ["op_1", "op_3", "op_2"]);
}

#[test]
fn a_session_is_in_use_until_its_operation_ends() {
    let (open, _) = operations();
    let uses = Arc::new(Uses::default());
    let owner = || OperationOwner {
        session: None,
        activity: Some(Activity::begin(&uses)),
    };
    open.hear(&news("queued", "op_1", "queued"), owner);
    open.hear(&news("started", "op_1", "running"), || unreachable!());
    assert_eq!(uses.idle_for(), Duration::ZERO);
    open.hear(&news("ended", "op_1", "completed"), || unreachable!());
    assert!(uses.idle_for() > Duration::ZERO);
}

#[test]
fn what_a_backend_ran_when_it_died_was_interrupted() {
    let (open, recorder) = operations();
    open.hear(&news("started", "op_1", "running"), OperationOwner::default);
    open.lost("signal 9");
    let ended = recorder.ended.lock();
    assert_eq!(open.count(), OperationCount::default());
    assert_eq!(ended[0].report.status, "interrupted");
    assert_eq!(ended[0].report.reason.as_deref(), Some("signal 9"));
}
