use std::collections::HashSet;

use super::*;

#[test]
fn ids_are_short_and_differ() {
    let ids: HashSet<_> = (0..100_000).map(|_| OperationId::random()).collect();
    assert_eq!(ids.len(), 100_000);
    for id in ids {
        let random = id.as_str().strip_prefix("op_").unwrap();
        assert_eq!(random.len(), 10, "{id}");
        assert!(
            random.bytes().all(|byte| OperationId::ALPHABET.contains(&byte)),
            "{id}"
        );
    }
}
