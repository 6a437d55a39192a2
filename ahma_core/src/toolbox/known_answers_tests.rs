use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use super::{CheckKey, KnownAnswers};
use crate::mtdf::AvailabilityCommand;

fn check(words: &[&str]) -> AvailabilityCommand {
    AvailabilityCommand {
        argv: words.iter().map(|&word| word.to_owned()).collect(),
        path_dirs: Vec::new(),
        environment: Default::default(),
        directory: None,
        success_codes: vec![0],
    }
}

fn program(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_result_holds_for_every_project_until_the_program_changes() {
    let (bin, answers) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = bin.path().join("tool");
    program(&path, "#!/bin/sh\n");
    let key = |scope: &Path| CheckKey::of(&check(&["tool", "--version"]), &path, scope, "/bin", &[]).unwrap();
    let known = KnownAnswers::new(answers.path().to_owned());
    let first = key(one.path());
    assert_eq!(known.get(&first), None);
    let turn = known.turn(&first).unwrap().expect("nothing runs it");
    assert!(known.turn(&first).unwrap().is_none(), "it runs once at a time");
    known.keep(&first, &Ok(()), &turn);
    drop(turn);
    assert_eq!(known.get(&key(other.path())), Some(Ok(())));
    program(&path, "#!/bin/sh\nexit 1\n");
    assert_eq!(known.get(&key(other.path())), None);
}

#[test]
fn a_project_that_chooses_its_toolchain_has_results_of_its_own() {
    let (bin, scope, other) = (
        tempfile::tempdir().unwrap(),
        tempfile::tempdir().unwrap(),
        tempfile::tempdir().unwrap(),
    );
    let path = bin.path().join("tool");
    program(&path, "#!/bin/sh\n");
    let key = |scope: &Path| CheckKey::of(&check(&["tool", "--version"]), &path, scope, "/bin", &[]);
    assert_eq!(key(scope.path()), key(other.path()));
    fs::write(scope.path().join("rust-toolchain.toml"), "").unwrap();
    assert_ne!(key(scope.path()), key(other.path()));
    fs::write(other.path().join("rust-toolchain.toml"), "").unwrap();
    assert_ne!(key(scope.path()), key(other.path()));
}

#[test]
fn only_the_question_for_a_version_is_shared() {
    let path = Path::new("/bin/sh");
    let shared =
        |words: &[&str]| CheckKey::of(&check(words), path, Path::new("/nowhere"), "/bin", &[]).is_some();
    assert!(shared(&["cargo", "clippy", "--version"]));
    assert!(shared(&["go", "version"]));
    assert!(shared(&["docker", "version", "--format", "{{.Server.Version}}"]));
    assert!(!shared(&["test", "-e", "version"]));
    assert!(!shared(&["test", "-e", "ready"]));
    assert!(!shared(&["sh", "-c", "exit 1"]));
}
