use std::{collections::BTreeMap, path::Path, process::Command};

use proptest::prelude::*;

use super::{NulByte, render};
use crate::call::Program;

/// What a real shell makes of the script.
fn run(shell: &str, program: &Program, environment: &BTreeMap<String, String>) -> Vec<u8> {
    let script = render(program, Path::new("/"), environment).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("script");
    std::fs::write(&file, script).unwrap();
    Command::new(shell).arg(&file).output().unwrap().stdout
}

/// Prints its arguments, each ended by a NUL byte.
fn printf(words: &[String]) -> Program {
    Program::Argv(
        ["/usr/bin/printf", "%s\\0"]
            .map(str::to_owned)
            .into_iter()
            .chain(words.iter().cloned())
            .collect(),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_string_arrives_as_one_argument(words in prop::collection::vec("[^\\x00]{0,40}", 1..4)) {
        let expected: Vec<u8> = words.iter().flat_map(|word| word.bytes().chain([0])).collect();
        for shell in ["/bin/bash", "/bin/sh"] {
            prop_assert_eq!(run(shell, &printf(&words), &BTreeMap::new()), expected.clone());
        }
    }

    #[test]
    fn any_value_arrives_in_the_environment(value in "[^\\x00]{0,40}") {
        let environment = BTreeMap::from([("VALUE".to_owned(), value.clone())]);
        let script = Program::Script("printf %s \"$VALUE\"".into());
        for shell in ["/bin/bash", "/bin/sh"] {
            prop_assert_eq!(run(shell, &script, &environment), value.clone().into_bytes());
        }
    }
}

#[test]
fn hostile_words_stay_words() {
    for word in [
        "; touch /tmp/x",
        "$(id)",
        "`id`",
        "a'b\"c",
        "\n",
        "&& id",
        "-n",
        "!!",
        "~",
        "*",
        "\u{feff}",
        "a\\",
    ] {
        let expected = [word.as_bytes(), b"\0"].concat();
        assert_eq!(
            run("/bin/bash", &printf(&[word.to_owned()]), &BTreeMap::new()),
            expected,
            "{word:?}"
        );
    }
}

#[test]
fn a_nul_byte_is_refused() {
    let nul = Program::Argv(vec!["echo".into(), "a\0b".into()]);
    assert_eq!(render(&nul, Path::new("/"), &BTreeMap::new()), Err(NulByte));
}

#[test]
fn a_bad_variable_name_cannot_become_a_command() {
    let environment = BTreeMap::from([("A=1; echo hacked;B".to_owned(), "x".to_owned())]);
    assert_eq!(run("/bin/bash", &Program::Script(":".into()), &environment), b"");
}
