use std::{
    collections::BTreeMap,
    path::Path,
    process::{Command, Output},
};

use proptest::prelude::*;

use super::{BUILT_IN, NulByte, SCRIPT_FD, render, sole_program};
use crate::jail::READ_SCRIPT;

/// The arguments that a real shell makes of the script.
fn run(shell: &str, text: &str, environment: &BTreeMap<String, String>) -> Vec<u8> {
    read(shell, &render(text, Path::new("/"), None, environment).unwrap())
}

fn read(shell: &str, script: &[u8]) -> Vec<u8> {
    output(shell, script).stdout
}

fn output(shell: &str, script: &[u8]) -> Output {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("script");
    std::fs::write(&file, script).unwrap();
    let read = format!("exec {SCRIPT_FD}< {}; {READ_SCRIPT}", file.display());
    Command::new(shell).args(["-c", &read, "sh"]).output().unwrap()
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
fn a_complaint_is_about_the_text_alone() {
    for shell in ["/bin/bash", "/bin/sh"] {
        for text in ["for i in 1 2; do echo $i; fi", "-x"] {
            let script = render(text, Path::new("/"), None, &BTreeMap::new()).unwrap();
            let said = String::from_utf8(output(shell, &script).stderr).unwrap();
            let word = text.split(' ').next_back().unwrap();
            assert!(said.contains(word), "{shell}: {said}");
            for ours in ["shift", "_script", "invalid option"] {
                assert!(!said.contains(ours), "{shell}: {said}");
            }
        }
    }
}

#[test]
fn a_script_that_was_cut_off_does_not_run() {
    // One that is not quoted, one that is quoted as a whole, and one that is quoted in pieces.
    for text in ["pwdx", "echo a; echo b", "echo $HOME; echo 'a'; echo \"b\""] {
        let script = render(text, Path::new("/"), None, &BTreeMap::new()).unwrap();
        let whole = script.strip_suffix(b"\n").unwrap();
        let prepared = String::from_utf8_lossy(whole).find("set -- ").unwrap() + "set -- ".len();
        for shell in ["/bin/bash", "/bin/sh"] {
            for length in prepared..whole.len() {
                let output = read(shell, &whole[..length]);
                let cut = String::from_utf8_lossy(&whole[..length]);
                assert_eq!(String::from_utf8_lossy(&output), "", "{shell}: {cut}");
            }
        }
    }
}

#[test]
fn a_nul_byte_is_refused() {
    assert_eq!(
        render("echo a\0b", Path::new("/"), None, &BTreeMap::new()),
        Err(NulByte)
    );
}

#[test]
fn a_bad_variable_name_cannot_become_a_command() {
    let environment = BTreeMap::from([("A=1; echo hacked;B".to_owned(), "x".to_owned())]);
    assert_eq!(run("/bin/bash", ":", &environment), b"");
}

#[test]
fn only_a_program_and_plain_words_are_taken() {
    for (text, program) in [
        ("git status", Some("git")),
        (" ls -la src/lib.rs ", Some("ls")),
        ("cargo test -p a --features=b,c", Some("cargo")),
        ("7z", Some("7z")),
        ("", None),
        ("echo hi", None),
        ("test -e x", None),
        ("A=b env", None),
        ("./run", None),
        ("-x", None),
        ("ls *.rs", None),
        ("ls ~", None),
        ("ls; pwd", None),
        ("ls\npwd", None),
        ("sleep 5 &", None),
        ("ls > x", None),
        ("ls $HOME", None),
        ("ls 'a b'", None),
        ("ls {1,2}", None),
        ("ls # all", None),
        ("! ls", None),
        ("time ls", None),
    ] {
        assert_eq!(sole_program(text), program, "{text:?}");
    }
}

#[test]
fn the_list_is_in_order() {
    assert!(BUILT_IN.is_sorted());
}
