use super::*;
use crate::audit::Audit;
use crate::child::{ChildLimits, ChildSpawner, FixedCommand, Restart, Spawn};
use crate::operations::OperationRecorder;
use crate::redact::Redactor;
use crate::session::{Hub, Service, Transport};

/// A session whose child is never asked for, so that none is started.
fn params() -> SessionParams {
    let hub = Arc::new(Hub::default());
    let factory = FixedCommand {
        program: "none".into(),
        args: Vec::new(),
        default_scope: "/".into(),
    };
    let spawner = ChildSpawner {
        factory: Arc::new(factory),
        limits: ChildLimits {
            grace: Duration::ZERO,
            echo: None,
            recorder: Arc::new(OperationRecorder::new(Arc::new(Audit::to_log(Arc::new(
                Redactor::new(),
            ))))),
        },
        start_timeout: Duration::ZERO,
        principal: None,
    };
    let sink = Arc::clone(&hub) as Arc<_>;
    let backend = spawner.backend(Spawn::Shared, Restart::OnDemand, "".into(), sink);
    SessionParams {
        audit: Arc::new(Audit::to_log(Arc::new(Redactor::new()))),
        principal: Arc::new(Principal::anonymous()),
        transport: Transport::StreamableHttp,
        service: Service::Shared { backend, hub },
        max_calls: 1,
        first_stream: 0,
    }
}

#[test]
fn nothing_opens_once_everything_ends() {
    let sessions = Sessions::new(8);
    let client = Principal::anonymous();
    sessions.open(params()).unwrap();
    sessions.admit_sessionless(&client).unwrap();
    sessions.readmit_sessionless().unwrap();
    assert_eq!(sessions.take_all().len(), 1);
    for refused in [
        sessions.open(params()).map(drop),
        sessions.admit_sessionless(&client),
        sessions.readmit_sessionless(),
    ] {
        assert!(matches!(refused, Err(RequestError::ShuttingDown)), "{refused:?}");
    }
    assert_eq!(sessions.live(), 0);
}
