use std::sync::OnceLock;

use super::*;
use crate::audit::Audit;
use crate::backend::{Backend, BackendParams, Restart};
use crate::child::{ChildLimits, FixedCommand, Spawn};
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
    let backend = Backend::new(BackendParams {
        factory: Arc::new(factory),
        spawn: Spawn::Shared,
        restart: Restart::OnDemand,
        limits: ChildLimits {
            grace: Duration::ZERO,
            echo: None,
        },
        start_timeout: Duration::ZERO,
        initialize: "".into(),
        audience: Arc::clone(&hub) as Arc<_>,
    });
    SessionParams {
        audit: Arc::new(Audit::to_log(Arc::new(Redactor::new()))),
        principal: Arc::new(Principal::anonymous()),
        transport: Transport::StreamableHttp,
        service: Service::Shared {
            backend,
            hub,
            ended: OnceLock::new(),
        },
        max_calls: 1,
    }
}

#[test]
fn nothing_opens_once_everything_ends() {
    let sessions = Sessions::new(8);
    let guest = Principal::anonymous();
    sessions.open(params()).unwrap();
    sessions.admit_guest(&guest).unwrap();
    assert_eq!(sessions.readmit_guest(), Ok(()));
    assert_eq!(sessions.take_all().len(), 1);
    assert_eq!(sessions.open(params()).unwrap_err(), OpenError::Closed);
    assert_eq!(sessions.admit_guest(&guest), Err(OpenError::Closed));
    assert_eq!(sessions.readmit_guest(), Err(OpenError::Closed));
    assert_eq!(sessions.live(), 0);
}
