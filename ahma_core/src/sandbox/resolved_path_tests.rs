use std::{fs, os::unix::fs::symlink};

use super::*;

#[test]
fn every_link_is_named_by_its_real_place() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().canonicalize().unwrap();
    let at = |name: &str| base.join(name);
    fs::create_dir_all(at("a/real")).unwrap();
    fs::create_dir(at("b")).unwrap();
    fs::write(at("a/real/file"), "").unwrap();
    symlink("../a/real", at("b/relative")).unwrap();
    symlink(at("b"), at("absolute")).unwrap();
    symlink("loop", at("loop")).unwrap();
    symlink("nothing", at("dangling")).unwrap();

    let way = |path: &str| ResolvedPath::of(&at(path));
    let expected = |links: &[&str], end: &str| {
        Some(ResolvedPath {
            links: links.iter().map(|link| at(link)).collect(),
            end: at(end),
        })
    };
    assert_eq!(way("a/real/file"), expected(&[], "a/real/file"));
    assert_eq!(way("b/../a/./real"), expected(&[], "a/real"));
    assert_eq!(
        way("absolute/relative/file"),
        expected(&["absolute", "b/relative"], "a/real/file")
    );
    for nowhere in ["missing", "loop", "dangling"] {
        assert_eq!(way(nowhere), None, "{nowhere}");
    }
}

#[test]
fn a_path_is_decided_where_its_links_are() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().canonicalize().unwrap();
    let (scope, home) = (base.join("scope"), base.join("home"));
    fs::create_dir(&scope).unwrap();
    fs::create_dir(&home).unwrap();
    symlink(&home, scope.join("link")).unwrap();
    symlink(&home, base.join("link")).unwrap();
    let is_decided = |path: PathBuf| {
        ResolvedPath::of(&path)
            .unwrap()
            .has_link_in(std::slice::from_ref(&scope))
    };
    assert!(is_decided(scope.join("link")));
    assert!(!is_decided(base.join("link")));
    assert!(!is_decided(scope.clone()));
}
