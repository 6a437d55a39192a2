//! Which known names someone probably meant.

/// The names that are near enough to `wanted` to be worth suggesting, best first, at most three.
pub(crate) fn nearest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    if wanted.len() > LONGEST_NAME {
        return Vec::new();
    }
    let wanted = wanted.to_lowercase();
    let mut scored: Vec<(f64, &str)> = known
        .into_iter()
        .map(|name| (likeness(&wanted, &name.to_lowercase()), name))
        .filter(|(likeness, _)| *likeness >= NEAR)
        .collect();
    scored.sort_by(|(left, left_name), (right, right_name)| {
        right.total_cmp(left).then(left_name.cmp(right_name))
    });
    scored.into_iter().take(3).map(|(_, name)| name).collect()
}

/// Comparing takes time with the product of both lengths, and no name is longer than this.
const LONGEST_NAME: usize = 256;

/// From here on a name is worth suggesting.
const NEAR: f64 = 0.6;

/// Among shorter names, too many are one letter from each other.
const SHORTEST_SLIP: usize = 5;

/// From 0 to 1. A slip of one letter counts most: `sub_command` is `subcommand` rather than `command`. A name that is a part
/// of the other one counts as near, the nearer the less is missing: `commit` for `git_commit`. So does one that begins
/// almost like the other: `timout` for `timeout_seconds`.
fn likeness(wanted: &str, name: &str) -> f64 {
    let likeness = strsim::normalized_damerau_levenshtein(wanted, name);
    if wanted.len() >= SHORTEST_SLIP && strsim::damerau_levenshtein(wanted, name) <= 1 {
        return (9.0 + likeness) / 10.0;
    }
    let contained = wanted.len() >= 3 && name.len() >= 3 && (name.contains(wanted) || wanted.contains(name));
    if contained {
        (3.0 + likeness) / 4.0
    } else if strsim::jaro_winkler(wanted, name) > 0.85 {
        likeness.max(NEAR)
    } else {
        likeness
    }
}
