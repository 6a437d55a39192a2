use super::*;

fn locked(scope: &str) -> SessionState {
    SessionState::Locked { scope: scope.into() }
}

fn ended(reason: EndReason) -> SessionState {
    SessionState::Ended { reason }
}

#[test]
fn every_state_answers_every_event() {
    use Effect::{AskRoots, InitializeDeferred, StartChild, StopChild};
    use EndReason::{Deleted, Idle, RootRejected, RootsChanged};
    use RootsSupport::{Missing, Offered};
    use SessionEvent::{Closed, Initialized, RootsAnswered, RootsListChanged};
    use SessionState::{AskingRoots, AwaitingInitialized, Opened, Shared};

    let initialize = |roots| SessionEvent::Initialize {
        roots,
        default_scope: "/default".into(),
    };
    let scope = || RootsAnswered(RootsAnswer::Scope("/w".into()));
    let other = || RootsAnswered(RootsAnswer::Scope("/other".into()));
    let none = || RootsAnswered(RootsAnswer::Default("/default".into()));
    let bad = || RootsAnswered(RootsAnswer::Unusable("no".into()));
    let table = [
        (
            Opened,
            initialize(Offered),
            AwaitingInitialized,
            vec![InitializeDeferred],
        ),
        (
            Opened,
            initialize(Missing),
            locked("/default"),
            vec![StartChild("/default".into())],
        ),
        (Opened, Initialized, Opened, vec![]),
        (Opened, scope(), Opened, vec![]),
        (Opened, RootsListChanged, Opened, vec![]),
        (Opened, Closed(Idle), ended(Idle), vec![StopChild]),
        (
            AwaitingInitialized,
            initialize(Missing),
            AwaitingInitialized,
            vec![],
        ),
        (AwaitingInitialized, Initialized, AskingRoots, vec![AskRoots]),
        (AwaitingInitialized, scope(), AwaitingInitialized, vec![]),
        (AwaitingInitialized, RootsListChanged, AwaitingInitialized, vec![]),
        (
            AwaitingInitialized,
            Closed(Deleted),
            ended(Deleted),
            vec![StopChild],
        ),
        (AskingRoots, initialize(Offered), AskingRoots, vec![]),
        (AskingRoots, Initialized, AskingRoots, vec![]),
        (AskingRoots, scope(), locked("/w"), vec![StartChild("/w".into())]),
        (
            AskingRoots,
            none(),
            locked("/default"),
            vec![StartChild("/default".into())],
        ),
        (
            AskingRoots,
            bad(),
            ended(RootRejected("no".into())),
            vec![StopChild],
        ),
        (AskingRoots, RootsListChanged, AskingRoots, vec![]),
        (AskingRoots, Closed(Deleted), ended(Deleted), vec![StopChild]),
        (locked("/w"), initialize(Offered), locked("/w"), vec![]),
        (locked("/w"), Initialized, locked("/w"), vec![]),
        (locked("/w"), other(), locked("/w"), vec![]),
        (locked("/w"), bad(), locked("/w"), vec![]),
        (
            locked("/w"),
            RootsListChanged,
            ended(RootsChanged),
            vec![StopChild],
        ),
        (locked("/w"), Closed(Idle), ended(Idle), vec![StopChild]),
        (
            ended(RootsChanged),
            initialize(Offered),
            ended(RootsChanged),
            vec![],
        ),
        (ended(RootsChanged), other(), ended(RootsChanged), vec![]),
        (ended(RootsChanged), Closed(Deleted), ended(RootsChanged), vec![]),
        (ended(Deleted), RootsListChanged, ended(Deleted), vec![]),
        (Shared, initialize(Offered), Shared, vec![]),
        (Shared, initialize(Missing), Shared, vec![]),
        (Shared, Initialized, Shared, vec![]),
        (Shared, scope(), Shared, vec![]),
        (Shared, bad(), Shared, vec![]),
        (Shared, RootsListChanged, Shared, vec![]),
        (Shared, Closed(Idle), ended(Idle), vec![StopChild]),
    ];
    for (state, event, next, effects) in table {
        let label = format!("{state:?} on {event:?}");
        assert_eq!(state.on(event), (next, effects), "{label}");
    }
}

#[test]
fn only_refusals_are_told_to_the_client() {
    assert!(EndReason::RootsChanged.is_refusal());
    assert!(EndReason::RootRejected("x".into()).is_refusal());
    assert!(!EndReason::Deleted.is_refusal());
    assert!(!EndReason::Idle.is_refusal());
}
