use std::os::unix::fs::symlink;

use super::*;

fn replace(path: &Path, content: &str) -> PlannedChange {
    PlannedChange {
        path: path.to_owned(),
        kind: ContentChange::Replace {
            content: content.into(),
            executable: None,
            seen: FileStamp::of(&fs::metadata(path).unwrap()),
        },
    }
}

fn create_file(path: &Path, content: &str) -> PlannedChange {
    PlannedChange {
        path: path.to_owned(),
        kind: ContentChange::Create {
            content: content.into(),
            executable: false,
        },
    }
}

fn remove(path: &Path) -> PlannedChange {
    PlannedChange {
        path: path.to_owned(),
        kind: ContentChange::Remove {
            seen: FileStamp::of(&fs::symlink_metadata(path).unwrap()),
        },
    }
}

/// Every file below a directory with its content.
fn tree(directory: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(
                tree(&path)
                    .into_iter()
                    .map(|(name, content)| (format!("{}/{name}", name_of(&path)), content)),
            );
        } else {
            found.push((name_of(&path), fs::read_to_string(&path).unwrap_or_default()));
        }
    }
    found.sort();
    found
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

fn pairs(files: &[(&str, &str)]) -> Vec<(String, String)> {
    files
        .iter()
        .map(|(name, content)| ((*name).into(), (*content).into()))
        .collect()
}

#[test]
fn all_changes_are_made_and_nothing_else_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    fs::write(path("a"), "old").unwrap();
    fs::write(path("c"), "gone").unwrap();
    commit(vec![
        replace(&path("a"), "new"),
        create_file(&path("deep/er/b"), "b"),
        remove(&path("c")),
    ])
    .unwrap();
    assert_eq!(tree(dir.path()), pairs(&[("a", "new"), ("deep/er/b", "b")]));
}

#[test]
fn when_one_fails_all_are_undone() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    for name in ["a", "b", "taken"] {
        fs::write(path(name), name).unwrap();
    }
    let error = commit(vec![
        replace(&path("a"), "new"),
        create_file(&path("deep/c"), "c"),
        remove(&path("b")),
        create_file(&path("taken"), "x"),
    ])
    .unwrap_err();
    assert!(
        matches!(&error, CommitError::Io { path, .. } if path.ends_with("taken")),
        "{error}"
    );
    assert_eq!(
        tree(dir.path()),
        pairs(&[("a", "a"), ("b", "b"), ("taken", "taken")])
    );
    assert!(!path("deep").exists());
}

#[test]
fn a_file_that_was_changed_meanwhile_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    for meddle in [
        (|path: &Path| fs::write(path, "theirs").unwrap()) as fn(&Path),
        |path| {
            fs::write(path.with_file_name("other"), "theirs").unwrap();
            fs::rename(path.with_file_name("other"), path).unwrap();
        },
        |path| {
            fs::write(path.with_file_name("theirs"), "theirs").unwrap();
            fs::remove_file(path).unwrap();
            symlink("theirs", path).unwrap();
        },
    ] {
        let _ = fs::remove_file(&path);
        fs::write(&path, "mine").unwrap();
        let change = replace(&path, "new");
        meddle(&path);
        let error = commit(vec![change]).unwrap_err();
        assert!(matches!(error, CommitError::Changed { .. }), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
    }
}

#[test]
fn modes_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    for mode in [0o600, 0o644, 0o755, 0o700, 0o4755] {
        let path = dir.path().join(format!("{mode:o}"));
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        commit(vec![replace(&path, "new")]).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, mode, "{mode:o}");
    }
}
