//! Suggestions for a misspelt name.

/// The names that are near enough to `wanted` to be worth suggesting, best first, at most three.
#[must_use]
pub fn nearest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    if wanted.len() > MAX_NAME_BYTES {
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

/// One letter at most was added, left out or exchanged, or two neighbours were swapped.
#[must_use]
pub fn is_slip(left: &str, right: &str) -> bool {
    strsim::damerau_levenshtein(left, right) <= 1
}

/// Comparing takes time with the product of both lengths, and no name is longer than this.
const MAX_NAME_BYTES: usize = 256;

/// From here on a name is worth suggesting.
const NEAR: f64 = 0.6;

/// Among shorter names, too many are one letter from each other.
const MIN_SLIP_BYTES: usize = 5;

/// From 0 to 1. A slip of one letter counts most: `sub_command` is `subcommand` rather than `command`. A name that is a part
/// of the other one counts as near, the nearer the less is missing: `commit` for `git_commit`. So does one that begins
/// almost like the other: `timout` for `timeout_seconds`.
fn likeness(wanted: &str, name: &str) -> f64 {
    let likeness = strsim::normalized_damerau_levenshtein(wanted, name);
    if wanted.len() >= MIN_SLIP_BYTES && is_slip(wanted, name) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_a_part_and_a_beginning_are_near() {
        let known = ["command", "subcommand", "git_commit", "timeout_seconds", "await"];
        for (wanted, expected) in [
            ("sub_command", &["subcommand", "command"][..]),
            ("commit", &["git_commit"]),
            ("timout", &["timeout_seconds"]),
            ("AWIAT", &["await"]),
            ("completely-different", &[]),
        ] {
            let found = nearest(wanted, known);
            assert_eq!(
                found.get(..expected.len().max(1)).unwrap_or(&found),
                expected,
                "{wanted}"
            );
        }
        assert!(nearest(&"x".repeat(MAX_NAME_BYTES + 1), ["x"]).is_empty());
    }
}
