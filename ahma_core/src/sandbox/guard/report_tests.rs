use super::*;

fn change(kind: ChangeKind, undone: bool, quarantined: Option<&str>) -> ProtectedChange {
    ProtectedChange {
        path: "/scope/.envrc".into(),
        kind,
        undone,
        quarantined: quarantined.map(Into::into),
    }
}

#[test]
fn many_changes_are_told_in_short_and_the_worst_in_full() {
    let changes: Vec<_> = (0..600)
        .map(|number| ProtectedChange {
            path: format!("/scope/.vscode/{number}").into(),
            ..change(ChangeKind::Created, number != 500, None)
        })
        .collect();
    let told = ProtectedChange::sentences(&changes);
    assert_eq!(told.len(), MAX_SENTENCES + 1);
    assert!(told[0].contains("/scope/.vscode/500"), "{told:?}");
    assert!(told[MAX_SENTENCES].contains("580 more"), "{told:?}");
    assert_eq!(ProtectedChange::sentences(&[]), [""; 0]);
}

#[test]
fn the_sentence_says_what_was_done() {
    use ChangeKind::{Changed, Created, Removed, Unknown};
    for (kind, undone, kept, expected) in [
        (Created, true, Some("/kept"), "it was removed"),
        (Created, false, None, "could not be moved away"),
        (Changed, true, Some("/kept"), "it was restored"),
        (
            Changed,
            false,
            Some("/kept"),
            "it was moved away, and could not be restored",
        ),
        (Changed, false, None, "it could not be restored"),
        (Removed, true, None, "it was restored"),
        (Removed, false, None, "it could not be restored"),
        (Unknown, false, None, "could not be checked"),
    ] {
        let sentence = change(kind, undone, kept).sentence();
        assert!(sentence.contains(expected), "{sentence}");
        assert_eq!(sentence.contains("/kept"), kept.is_some(), "{sentence}");
    }
}
