use std::collections::HashSet;

use super::*;
use crate::mtdf::{ToolSource, check_set};

#[test]
fn a_project_is_known_by_its_files() {
    let project = tempfile::tempdir().expect("a temporary directory");
    let names_with = |named: &[String]| -> Vec<_> {
        let found = chosen(project.path(), named).expect("well-formed");
        found.into_iter().map(|pack| pack.name).collect()
    };
    assert_eq!(names_with(&[]), ["search"]);
    fs::write(project.path().join("Cargo.toml"), "").expect("writable");
    fs::create_dir_all(project.path().join("web/src")).expect("writable");
    fs::write(project.path().join("web/package.json"), "").expect("writable");
    fs::create_dir(project.path().join("node_modules")).expect("writable");
    fs::write(project.path().join("node_modules/Makefile"), "").expect("writable");
    assert_eq!(names_with(&[]), ["rust", "node", "search"]);
    let named = ["rust".to_owned(), "security".to_owned()];
    assert_eq!(names_with(&named), ["rust", "node", "search", "security"]);
}

#[test]
fn every_directory_is_a_pack_and_every_pack_a_directory() {
    let packs = all().expect("well-formed");
    let listed: HashSet<_> = packs.iter().map(|pack| pack.name.as_str()).collect();
    assert_eq!(listed, names().into_iter().collect());
    assert_eq!(listed.len(), packs.len(), "a pack is listed twice");
    for pack in &packs {
        for also in pack.also.iter().chain(&pack.recorded) {
            assert!(
                pack.files().any(|file| file.name == also),
                "{}: {also}",
                pack.name
            );
        }
    }
}

#[test]
fn the_files_of_each_pack_stand_on_their_own() {
    for pack in all().expect("well-formed") {
        let sources: Vec<ToolSource> = (pack.files())
            .map(|file| ToolSource {
                name: file.name.to_owned(),
                text: file.text.to_owned(),
            })
            .collect();
        let report = check_set(&sources);
        assert!(report.problems.is_empty(), "{}: {:?}", pack.name, report.problems);
    }
}

/// All are written into one directory.
#[test]
fn no_two_files_have_the_same_name() {
    let names: HashSet<_> = FILES.iter().map(|(_, name, _)| name).collect();
    assert_eq!(names.len(), FILES.len());
}
