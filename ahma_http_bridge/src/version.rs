//! Protocol revisions. They are dates, so they compare as text.

/// The first revision without sessions.
const FIRST_MODERN: &str = "2026-07-28";
/// The first revision of Streamable HTTP, assumed for a client that sends no version.
pub(crate) const OLDEST_STREAMABLE: &str = "2025-03-26";
/// The first revision whose clients understand an event without data, sent to give them an id to resume from.
pub(crate) const FIRST_WITH_PRIMING: &str = "2025-11-25";
/// The only revision of Streamable HTTP with batches.
pub(crate) const WITH_BATCHES: &str = "2025-03-26";

const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

pub(crate) fn is_legacy(version: &str) -> bool {
    LEGACY.contains(&version)
}

/// True for a version of the era without sessions, known to us or not: the server decides what it supports.
pub(crate) fn is_modern(version: &str) -> bool {
    version >= FIRST_MODERN
}
