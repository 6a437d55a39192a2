use std::{collections::BTreeMap, path::Path, process::Command};

use proptest::prelude::*;

use super::{NulByte, SCRIPT_FD, render};
use crate::jail::READ_SCRIPT;

/// What a real shell makes of the script.
fn run(shell: &str, text: &str, environment: &BTreeMap<String, String>) -> Vec<u8> {
    let script = render(text, Path::new("/"), environment).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("script");
    std::fs::write(&file, script).unwrap();
    let read = format!("exec {SCRIPT_FD}< {}; {READ_SCRIPT}", file.display());
    Command::new(shell)
        .args(["-c", &read, "sh"])
        .output()
        .unwrap()
        .stdout
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_string_arrives_as_one_script(text in "[^\\x00]{0,40}") {
        let quoted = shlex::try_quote(&text).unwrap();
        for shell in ["/bin/bash", "/bin/sh"] {
            let output = run(shell, &format!("printf %s {quoted}"), &BTreeMap::new());
            prop_assert_eq!(output, text.clone().into_bytes());
        }
    }

    #[test]
    fn any_value_arrives_in_the_environment(value in "[^\\x00]{0,40}") {
        let environment = BTreeMap::from([("VALUE".to_owned(), value.clone())]);
        let script = "printf %s \"$VALUE\"";
        for shell in ["/bin/bash", "/bin/sh"] {
            prop_assert_eq!(run(shell, script, &environment), value.clone().into_bytes());
        }
    }
}

#[test]
fn a_nul_byte_is_refused() {
    assert_eq!(
        render("echo a\0b", Path::new("/"), &BTreeMap::new()),
        Err(NulByte)
    );
}

#[test]
fn a_bad_variable_name_cannot_become_a_command() {
    let environment = BTreeMap::from([("A=1; echo hacked;B".to_owned(), "x".to_owned())]);
    assert_eq!(run("/bin/bash", ":", &environment), b"");
}
