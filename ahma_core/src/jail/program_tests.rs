use std::{collections::BTreeMap, path::Path};

use proptest::prelude::*;

use super::{ExecRequest, NulByte, OutputStreams, candidates, encode_exec_request};

proptest! {
    #[test]
    fn a_request_arrives_complete_or_not_at_all(
        words in prop::collection::vec("[^\\x00]{0,20}", 1..4),
        streams in prop::sample::select(vec![OutputStreams::Joined, OutputStreams::AsTheyAre]),
        environment in prop::collection::btree_map("[A-Z]{1,5}", "[^\\x00]{0,20}", 0..3),
    ) {
        let stdin = Some(Path::new("/in"));
        let text = encode_exec_request(Path::new("/some where"), stdin, streams, &environment, &words).unwrap();
        let read = ExecRequest::decode(&text).unwrap();
        prop_assert_eq!(read.directory, Path::new("/some where"));
        prop_assert_eq!(read.streams, streams);
        let expected: Vec<String> = environment.iter().map(|(name, value)| format!("{name}={value}")).collect();
        prop_assert_eq!(read.variables, expected.iter().map(String::as_bytes).collect::<Vec<_>>());
        prop_assert_eq!(read.words, words.iter().map(String::as_bytes).collect::<Vec<_>>());
        for length in 0..text.len() {
            prop_assert_eq!(ExecRequest::decode(&text[..length]), None);
        }
    }
}

#[test]
fn a_nul_byte_is_refused() {
    let none = BTreeMap::new();
    let words = ["echo".to_owned(), "a\0b".to_owned()];
    assert_eq!(
        encode_exec_request(Path::new("/"), None, OutputStreams::Joined, &none, &words),
        Err(NulByte)
    );
    let environment = BTreeMap::from([("A".to_owned(), "\0".to_owned())]);
    assert_eq!(
        encode_exec_request(
            Path::new("/"),
            None,
            OutputStreams::Joined,
            &environment,
            &words[..1]
        ),
        Err(NulByte)
    );
}

#[test]
fn a_name_is_looked_for_as_a_shell_does() {
    for (name, path, expected) in [
        ("ls", "PATH=/a:/b", &["/a/ls", "/b/ls"] as &[&str]),
        ("ls", "PATH=/a::/b", &["/a/ls", "./ls", "/b/ls"]),
        ("ls", "HOME=/a", &["/usr/local/bin/ls", "/usr/bin/ls", "/bin/ls"]),
        ("./ls", "PATH=/a", &["./ls"]),
        ("/x/ls", "PATH=/a", &["/x/ls"]),
        ("", "PATH=/a", &[""]),
    ] {
        let found = candidates(name.as_bytes(), &[std::ffi::CString::new(path).unwrap()]);
        assert_eq!(
            found,
            expected.iter().map(Path::new).collect::<Vec<_>>(),
            "{name} {path}"
        );
    }
}
