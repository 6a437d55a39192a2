//! Compares two looks at the protected paths. Nothing is read or changed here.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    baseline::{Names, Node},
    report::ChangeKind,
};

/// One protected path that is not what it was.
#[derive(Debug)]
pub(super) struct Difference<'a> {
    /// Below the root.
    pub(super) path: PathBuf,
    pub(super) kind: ChangeKind,
    pub(super) before: Option<&'a Node>,
    /// The same kind of directory with another mode: it need not be moved away.
    pub(super) mode_only: bool,
}

/// All differences, parents first.
pub(super) fn differences<'a>(names: &Names, before: &'a Node, after: &Node) -> Vec<Difference<'a>> {
    let mut found = Vec::new();
    compare(Path::new(""), names, Some(before), Some(after), &mut found);
    found
}

fn compare<'a>(
    path: &Path,
    names: &Names,
    before: Option<&'a Node>,
    after: Option<&Node>,
    found: &mut Vec<Difference<'a>>,
) {
    let mut report = |kind, mode_only| {
        found.push(Difference {
            path: path.to_owned(),
            kind,
            before,
            mode_only,
        });
    };
    match (before, after) {
        (None, None) | (Some(Node::Unreadable), Some(Node::Unreadable)) => {}
        (Some(Node::Unreadable), Some(_)) | (_, Some(Node::Unreadable)) => {
            report(ChangeKind::Unknown, false);
        }
        // A command may make the directory that a protected name would be in.
        (None, Some(after @ Node::Directory { .. })) if names.is_container() => {
            compare_entries(path, names, None, after, found);
        }
        (None, Some(_)) => report(ChangeKind::Created, false),
        (Some(_), None) => report(ChangeKind::Removed, false),
        (Some(before @ Node::Directory { stamp, .. }), Some(after @ Node::Directory { stamp: now, .. })) => {
            if !names.is_container() && stamp.mode != now.mode {
                report(ChangeKind::Changed, true);
            }
            compare_entries(path, names, Some(before), after, found);
        }
        (Some(before), Some(after)) if is_same(before, after) => {}
        (Some(_), Some(_)) => report(ChangeKind::Changed, false),
    }
}

fn compare_entries<'a>(
    path: &Path,
    names: &Names,
    before: Option<&'a Node>,
    after: &Node,
    found: &mut Vec<Difference<'a>>,
) {
    let before = before.and_then(Node::entries);
    let after = after.entries();
    let keys = before.into_iter().chain(after).flat_map(|entries| entries.keys());
    for name in keys.collect::<BTreeSet<_>>() {
        compare(
            &path.join(name),
            names.below(name),
            before.and_then(|entries| entries.get(name)),
            after.and_then(|entries| entries.get(name)),
            found,
        );
    }
}

fn is_same(before: &Node, after: &Node) -> bool {
    match (before, after) {
        (
            Node::File { stamp, content },
            Node::File {
                stamp: now,
                content: content_now,
            },
        ) => match (content, content_now) {
            (Some(before), Some(after)) => {
                (Arc::ptr_eq(before, after) || before == after) && stamp.mode == now.mode
            }
            (Some(_), None) => false,
            (None, _) => stamp.equals(now),
        },
        (Node::Mounted { id, .. }, Node::Mounted { id: now, .. })
        | (Node::Other { id }, Node::Other { id: now }) => id == now,
        (Node::Link { target }, Node::Link { target: now }) => target == now,
        _ => false,
    }
}
