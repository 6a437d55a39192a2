use std::path::Path;

use super::*;

fn locked(scope: &str) -> SessionState {
    SessionState::Locked { scope: scope.into() }
}

fn ended(reason: EndReason) -> SessionState {
    SessionState::Ended { reason }
}

#[test]
fn every_state_answers_every_event() {
    use Effect::{AskRoots, Greet, StartChild, StopChild};
    use EndReason::{Deleted, Idle, RootRejected, RootsChanged};
    use RootsSupport::{Missing, Offered};
    use SessionEvent::{Closed, Initialize, Initialized, RootsAnswered, RootsListChanged};
    use SessionState::{AskingRoots, Greeted, Opened};

    let scope = || RootsAnswered(RootsAnswer::Scope("/w".into()));
    let other = || RootsAnswered(RootsAnswer::Scope("/other".into()));
    let none = || RootsAnswered(RootsAnswer::Default("/default".into()));
    let bad = || RootsAnswered(RootsAnswer::Unusable("no".into()));
    let table = [
        (Opened, Initialize(Offered), Greeted, vec![Greet]),
        (
            Opened,
            Initialize(Missing),
            locked("/default"),
            vec![StartChild("/default".into())],
        ),
        (Opened, Initialized, Opened, vec![]),
        (Opened, scope(), Opened, vec![]),
        (Opened, RootsListChanged, Opened, vec![]),
        (Opened, Closed(Idle), ended(Idle), vec![StopChild]),
        (Greeted, Initialize(Missing), Greeted, vec![]),
        (Greeted, Initialized, AskingRoots, vec![AskRoots]),
        (Greeted, scope(), Greeted, vec![]),
        (Greeted, RootsListChanged, Greeted, vec![]),
        (Greeted, Closed(Deleted), ended(Deleted), vec![StopChild]),
        (AskingRoots, Initialize(Offered), AskingRoots, vec![]),
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
        (locked("/w"), Initialize(Offered), locked("/w"), vec![]),
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
            Initialize(Offered),
            ended(RootsChanged),
            vec![],
        ),
        (ended(RootsChanged), other(), ended(RootsChanged), vec![]),
        (ended(RootsChanged), Closed(Deleted), ended(RootsChanged), vec![]),
        (ended(Deleted), RootsListChanged, ended(Deleted), vec![]),
    ];
    for (state, event, next, effects) in table {
        let label = format!("{state:?} on {event:?}");
        assert_eq!(state.on(event, Path::new("/default")), (next, effects), "{label}");
    }
}

#[test]
fn only_refusals_are_told_to_the_client() {
    assert!(EndReason::RootsChanged.is_refusal());
    assert!(EndReason::RootRejected("x".into()).is_refusal());
    assert!(!EndReason::Deleted.is_refusal());
    assert!(!EndReason::Idle.is_refusal());
}
