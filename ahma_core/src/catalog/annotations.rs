//! Hints for clients where a tool file gives none.

use crate::mtdf::Annotations;

/// All four hints. What is not said is taken for the worst that a program can do, because clients skip the question to
/// their user where a hint allows it.
pub(super) fn complete(given: &Annotations) -> Annotations {
    let reads_only = given.read_only.unwrap_or(false);
    Annotations {
        title: given.title.clone(),
        read_only: Some(reads_only),
        destructive: Some(!reads_only && given.destructive.unwrap_or(true)),
        idempotent: Some(given.idempotent.unwrap_or(reads_only)),
        open_world: Some(given.open_world.unwrap_or(true)),
    }
}
