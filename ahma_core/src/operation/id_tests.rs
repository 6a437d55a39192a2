use std::collections::HashSet;

use super::*;

#[test]
fn ids_are_short_and_never_repeat() {
    let mut source = IdSource::new();
    let ids: HashSet<_> = (0..100_000).map(|_| source.next()).collect();
    assert_eq!(ids.len(), 100_000);
    for id in ids {
        let random = id.as_str().strip_prefix("op_").unwrap();
        assert_eq!(random.len(), 8, "{id}");
        assert!(
            random.bytes().all(|byte| IdSource::ALPHABET.contains(&byte)),
            "{id}"
        );
    }
}

#[test]
fn two_engines_number_differently() {
    let first: Vec<_> = std::iter::repeat_with(IdSource::new)
        .map(|mut source| source.next())
        .take(20)
        .collect();
    let distinct: HashSet<_> = first.iter().collect();
    assert_eq!(distinct.len(), first.len(), "{first:?}");
}
