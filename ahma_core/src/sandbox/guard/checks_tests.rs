use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    time::{Duration, Instant},
};

use super::*;
use crate::sandbox::{ChangeKind, protected::PROTECTED};

use ChangeKind::{Changed, Created, Removed};

/// A scope with its guard.
struct Scene {
    directory: tempfile::TempDir,
    guard: Arc<Guard>,
}

impl Scene {
    fn new(tier: Tier, prepare: impl FnOnce(&Path)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let scope = directory.path().join("scope");
        fs::create_dir(&scope).unwrap();
        prepare(&scope);
        let guard = Self::guard(directory.path(), tier);
        Self { directory, guard }
    }

    fn guard(directory: &Path, tier: Tier) -> Arc<Guard> {
        let scope = directory.join("scope");
        let protected: Vec<PathBuf> = PROTECTED.iter().map(|name| scope.join(name)).collect();
        let guard = Guard::new(&scope, &protected, tier, directory.join("quarantine"));
        Arc::new(guard.unwrap().unwrap())
    }

    /// Makes the quarantine as useless as one on another file system.
    fn without_quarantine(self) -> Self {
        fs::write(self.directory.path().join("quarantine"), "").unwrap();
        self
    }

    fn scope(&self) -> PathBuf {
        self.directory.path().join("scope")
    }

    fn at(&self, name: &str) -> PathBuf {
        self.scope().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).unwrap()
    }

    /// Runs `command` as if it were one, and returns what was found and undone, by name.
    async fn during(&self, command: impl FnOnce(&Path)) -> Vec<(String, ChangeKind)> {
        let found = self.changes_during(command).await;
        assert!(found.iter().all(|change| change.undone), "{found:?}");
        self.by_name(&found)
    }

    async fn changes_during(&self, command: impl FnOnce(&Path)) -> Vec<ProtectedChange> {
        let pending = Guard::begin(&[Arc::clone(&self.guard)]).await;
        command(&self.scope());
        pending.finish().await
    }

    fn by_name(&self, found: &[ProtectedChange]) -> Vec<(String, ChangeKind)> {
        let relative = |path: &Path| path.strip_prefix(self.scope()).unwrap().display().to_string();
        found
            .iter()
            .map(|change| (relative(&change.path), change.kind))
            .collect()
    }

    /// Work of the check after a command that does nothing.
    async fn quiet_counts(&self) -> LookCounts {
        assert_eq!(self.during(|_| {}).await, []);
        self.guard.state.lock().counts
    }
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn remove(path: &Path) {
    if path.is_dir() {
        fs::remove_dir_all(path).unwrap();
    } else {
        fs::remove_file(path).unwrap();
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A scope with a repository and settings.
fn project(scope: &Path) {
    for (name, text) in [
        (".git/HEAD", "ref: refs/heads/main\n"),
        (".git/config", "[core]\n"),
        (".git/hooks/pre-commit", "good"),
        (".git/info/exclude", ""),
        (".ahma/tools/tool.json", "{}"),
        (".vscode/settings.json", "{}"),
        (".envrc", "good"),
    ] {
        write(&scope.join(name), text);
    }
}

#[test]
fn a_scope_that_is_not_the_directory_it_was_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("file"), "").unwrap();
    symlink(".", directory.path().join("link")).unwrap();
    for name in ["missing", "file", "link"] {
        let scope = directory.path().join(name);
        let guard = Guard::new(&scope, &[scope.join(".envrc")], Tier::Core, scope.clone());
        assert!(guard.is_err(), "{name}: {guard:?}");
        let guard = Guard::new(&scope, &[scope.join(".envrc")], Tier::Off, scope.clone());
        assert!(guard.unwrap().is_none(), "{name}");
    }
}

/// Every protected name, with nothing, a file or a directory there, and everything that a command could do to it.
#[tokio::test]
async fn each_protected_name_is_restored_and_reported() {
    type Act = fn(&Path);
    let file: Act = |path| write(path, "good");
    let directory: Act = |path| write(&path.join("inner"), "good");
    let evil: Act = |path| write(path, "evil");
    let cases: [(&str, Option<Act>, Act, ChangeKind); 12] = [
        ("file created", None, evil, Created),
        (
            "directory created",
            None,
            |path| write(&path.join("inner"), "evil"),
            Created,
        ),
        (
            "link created",
            None,
            |path| {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                symlink("/elsewhere", path).unwrap();
            },
            Created,
        ),
        ("file changed", Some(file), evil, Changed),
        (
            "mode of a file changed",
            Some(file),
            |path| set_mode(path, 0o755),
            Changed,
        ),
        (
            "file replaced",
            Some(file),
            |path| {
                write(&path.with_extension("new"), "evil");
                fs::rename(path.with_extension("new"), path).unwrap();
            },
            Changed,
        ),
        (
            "file replaced by a link",
            Some(file),
            |path| {
                remove(path);
                symlink("/elsewhere", path).unwrap();
            },
            Changed,
        ),
        ("file removed", Some(file), remove, Removed),
        (
            "file in a directory changed",
            Some(directory),
            |path| write(&path.join("inner"), "evil"),
            Changed,
        ),
        (
            "file in a directory created",
            Some(directory),
            |path| write(&path.join("new"), "evil"),
            Created,
        ),
        (
            "directory replaced by a link",
            Some(directory),
            |path| {
                remove(path);
                symlink("/elsewhere", path).unwrap();
            },
            Changed,
        ),
        ("directory removed", Some(directory), remove, Removed),
    ];
    for name in PROTECTED.iter().filter(|name| **name != ".git") {
        for (case, before, act, kind) in cases {
            let scene = Scene::new(Tier::Core, |scope| {
                fs::create_dir(scope.join(".git")).unwrap();
                if let Some(before) = before {
                    before(&scope.join(name));
                }
            });
            let found = scene.during(|scope| act(&scope.join(name))).await;
            let [(path, found_kind)] = found.as_slice() else {
                panic!("{name}, {case}: {found:?}");
            };
            assert!(path.starts_with(name), "{name}, {case}: {path}");
            assert_eq!(*found_kind, kind, "{name}, {case}");
            let path = scene.at(name);
            assert_eq!(
                path.symlink_metadata().is_ok(),
                before.is_some(),
                "{name}, {case}"
            );
            let kept = if path.is_dir() {
                path.join("inner")
            } else {
                path.clone()
            };
            if before.is_some() {
                assert_eq!(fs::read_to_string(&kept).unwrap(), "good", "{name}, {case}");
                assert!(!path.join("new").exists(), "{name}, {case}");
                let mode = fs::metadata(&kept).unwrap().permissions().mode();
                assert_eq!(mode & 0o111, 0, "{name}, {case}");
            }
            assert_eq!(scene.during(|_| {}).await, [], "{name}, {case}");
        }
    }
}

#[tokio::test]
async fn what_was_created_is_kept_in_quarantine() {
    let scene = Scene::new(Tier::Core, |_| {});
    let found = scene
        .during(|scope| {
            write(&scope.join(".vscode/tasks.json"), "evil");
            write(&scope.join("ordinary"), "fine");
        })
        .await;
    assert_eq!(found, [(".vscode".to_owned(), Created)]);
    assert!(scene.at("ordinary").exists());
    let mut kept = fs::read_dir(scene.directory.path().join("quarantine")).unwrap();
    let kept = kept.next().unwrap().unwrap().path();
    assert_eq!(fs::read_to_string(kept.join("tasks.json")).unwrap(), "evil");
}

#[tokio::test]
async fn a_link_is_never_followed() {
    let scene = Scene::new(Tier::Core, project);
    let outside = scene.directory.path().join("outside");
    write(&outside.join("tools/mine"), "mine");
    write(&outside.join("file"), "mine");
    let found = scene
        .changes_during(|scope| {
            for name in [".ahma", ".git/hooks", ".envrc"] {
                remove(&scope.join(name));
            }
            symlink(&outside, scope.join(".ahma")).unwrap();
            symlink(&outside, scope.join(".git/hooks")).unwrap();
            symlink(outside.join("file"), scope.join(".envrc")).unwrap();
        })
        .await;
    // Of `.ahma` only what is protected is known, so it is not said to be as it was.
    let undone: Vec<bool> = found.iter().map(|change| change.undone).collect();
    assert_eq!(undone, [false, true, true], "{found:?}");
    assert_eq!(fs::read_to_string(outside.join("tools/mine")).unwrap(), "mine");
    assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "mine");
    for (name, text) in [
        (".ahma/tools/tool.json", "{}"),
        (".git/hooks/pre-commit", "good"),
        (".envrc", "good"),
    ] {
        assert_eq!(scene.read(name), text, "{name}");
    }
    assert!(!scene.at(".ahma").is_symlink());
}

#[tokio::test]
async fn a_container_may_be_made_and_a_link_in_its_place_may_not() {
    let scene = Scene::new(Tier::Core, |_| {});
    let found = scene.during(|scope| fs::create_dir(scope.join(".ahma")).unwrap());
    assert_eq!(found.await, []);
    fs::remove_dir(scene.at(".ahma")).unwrap();
    let found = scene.during(|scope| symlink("elsewhere", scope.join(".ahma")).unwrap());
    assert_eq!(found.await, [(".ahma".to_owned(), Created)]);
}

#[tokio::test]
async fn a_repository_that_was_moved_away_is_brought_back_whole() {
    for tier in [Tier::Full, Tier::Core] {
        for act in [
            |_: &Path| {},
            |scope: &Path| symlink("away", scope.join(".git")).unwrap(),
            |scope: &Path| write(&scope.join(".git"), "gitdir: away"),
        ] {
            let scene = Scene::new(tier, project);
            let found = scene.during(|scope| {
                fs::create_dir(scope.join("deep")).unwrap();
                fs::rename(scope.join(".git"), scope.join("deep/away")).unwrap();
                act(scope);
            });
            assert_eq!(found.await.len(), 1, "{tier:?}");
            assert_eq!(scene.read(".git/HEAD"), "ref: refs/heads/main\n");
            assert_eq!(scene.read(".git/config"), "[core]\n");
        }
    }
}

/// Another repository in its place may stay, but not with another configuration.
#[tokio::test]
async fn a_repository_that_was_swapped_keeps_its_configuration() {
    let scene = Scene::new(Tier::Core, project);
    let found = scene
        .during(|scope| {
            fs::rename(scope.join(".git"), scope.join("old")).unwrap();
            write(&scope.join(".git/config"), "[core]\nfsmonitor = evil\n");
            write(&scope.join(".git/hooks/post-checkout"), "evil");
        })
        .await;
    assert!(found.contains(&(".git/config".to_owned(), Changed)), "{found:?}");
    assert_eq!(scene.read(".git/config"), "[core]\n");
    assert!(!scene.at(".git/hooks/post-checkout").exists());
    assert!(scene.at("old/config").exists());
}

#[tokio::test]
async fn repositories_of_the_user_are_left_alone() {
    for tier in [Tier::Full, Tier::Core] {
        let scene = Scene::new(tier, |scope| {
            project(scope);
            write(&scope.join("nested/.git/config"), "[core]\nfsmonitor = mine\n");
            write(&scope.join(".git/modules/sub/config"), "[core]\n");
            write(&scope.join("sub/.git"), "gitdir: ../.git/modules/sub\n");
            write(&scope.join(".git/worktrees/tree/commondir"), "../..\n");
        });
        let found = scene.during(|scope| {
            for name in [
                "nested/.git/config",
                "nested/.git/hooks/pre-commit",
                ".git/modules/sub/config",
                ".git/worktrees/tree/gitdir",
                ".git/worktrees/new/gitdir",
                ".git/index",
                ".git/info/refs",
                ".git/logs/HEAD",
                "sub/.envrc",
            ] {
                write(&scope.join(name), "changed");
            }
            symlink("HEAD", scope.join(".git/link")).unwrap();
        });
        assert_eq!(found.await, [], "{tier:?}");
        assert_eq!(scene.read("nested/.git/config"), "changed");
        assert!(scene.at(".git/link").is_symlink());
    }
}

#[tokio::test]
async fn what_the_user_changes_between_commands_stays() {
    for tier in [Tier::Full, Tier::Core] {
        let scene = Scene::new(tier, project);
        assert_eq!(scene.during(|_| {}).await, []);
        write(&scene.at(".envrc"), "two");
        write(&scene.at(".mcp.json"), "mine");
        write(&scene.at("config.lock"), "[user]\n");
        fs::rename(scene.at("config.lock"), scene.at(".git/config")).unwrap();
        assert_eq!(scene.during(|_| {}).await, [], "{tier:?}");
        for (name, text) in [
            (".envrc", "two"),
            (".mcp.json", "mine"),
            (".git/config", "[user]\n"),
        ] {
            assert_eq!(scene.read(name), text, "{tier:?}");
        }
        // The mounts of the two new ones are gone, or were never there.
        let found = scene.during(|scope| {
            write(&scope.join(".mcp.json"), "evil");
            write(&scope.join(".git/config"), "evil");
        });
        let expected = [".git/config", ".mcp.json"].map(|name| (name.to_owned(), Changed));
        assert_eq!(found.await, expected, "{tier:?}");
        assert_eq!(scene.read(".git/config"), "[user]\n", "{tier:?}");
    }
}

/// A mount keeps the inode but not its name: a directory above it can be renamed, and the user can replace it.
#[tokio::test]
async fn what_has_a_mount_is_restored_by_its_inode() {
    let scene = Scene::new(Tier::Full, project);
    let found = scene.changes_during(|scope| {
        fs::rename(scope.join(".ahma"), scope.join("old")).unwrap();
        write(&scope.join(".ahma/tools/evil.json"), "evil");
        write(&scope.join("new"), "evil");
        fs::rename(scope.join("new"), scope.join(".envrc")).unwrap();
    });
    let found = scene.by_name(&found.await);
    assert_eq!(
        found,
        [(".ahma/tools", Changed), (".envrc", Changed)].map(|(name, kind)| (name.to_owned(), kind))
    );
    assert_eq!(scene.read(".ahma/tools/tool.json"), "{}");
    assert!(!scene.at(".ahma/tools/evil.json").exists());
    assert_eq!(scene.read(".envrc"), "good");
}

#[tokio::test]
async fn a_quiet_check_looks_at_little_and_reads_nothing() {
    for (tier, stamps) in [
        // The scope, `.git`, `.git/info` and `.ahma`.
        (Tier::Full, 4),
        // And the nine files and directories that are protected in them.
        (Tier::Core, 13),
    ] {
        let scene = Scene::new(tier, project);
        // Young stamps prove nothing, so this takes as long as they are young.
        let deadline = Instant::now() + Duration::from_secs(30);
        let mut counts = scene.quiet_counts().await;
        while (counts.stamps, counts.lists) != (stamps, 0) && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(100)).await;
            counts = scene.quiet_counts().await;
        }
        assert_eq!((counts.stamps, counts.lists), (stamps, 0), "{tier:?}");
        // In a temporary directory in memory files are always read.
        if tier == Tier::Full || scene.guard.timed_device.is_some() {
            assert_eq!(counts.bytes_read, 0, "{tier:?}");
        }
        // Such a check misses nothing.
        let found = scene.during(|scope| {
            write(&scope.join(".git/commondir"), "evil");
            write(&scope.join(".mcp.json"), "evil");
        });
        assert_eq!(
            found.await,
            [".git/commondir", ".mcp.json"].map(|name| (name.to_owned(), Created)),
            "{tier:?}"
        );
        if tier == Tier::Core {
            let found = scene.during(|scope| write(&scope.join(".git/hooks/pre-commit"), "evil"));
            assert_eq!(found.await, [(".git/hooks/pre-commit".to_owned(), Changed)]);
        }
    }
}

#[tokio::test]
async fn rights_taken_away_do_not_keep_the_guard_out() {
    for mode in [0o000, 0o311, 0o555] {
        let scene = Scene::new(Tier::Core, project).without_quarantine();
        let found = scene
            .during(|scope| {
                write(&scope.join(".zed/tasks.json"), "evil");
                set_mode(&scope.join(".zed"), mode);
                write(&scope.join(".git/hooks/post-checkout"), "evil");
                set_mode(&scope.join(".git/hooks"), mode);
                write(&scope.join(".envrc"), "evil");
                set_mode(scope, mode);
            })
            .await;
        let mode_after = fs::metadata(scene.scope()).unwrap().permissions().mode() & 0o7777;
        set_mode(&scene.scope(), 0o755);
        let expected = [
            (".envrc", Changed),
            (".git/hooks", Changed),
            (".git/hooks/post-checkout", Created),
            (".zed", Created),
        ];
        assert_eq!(
            found,
            expected.map(|(name, kind)| (name.to_owned(), kind)),
            "{mode:o}"
        );
        assert_eq!(scene.read(".envrc"), "good");
        assert!(!scene.at(".zed").exists());
        assert_eq!(mode_after, mode, "the scope's own mode is the command's");
    }
}

#[tokio::test]
async fn the_longest_name_is_moved_away_as_well() {
    let scene = Scene::new(Tier::Core, project).without_quarantine();
    let name = format!(".vscode/{}", "n".repeat(255));
    let found = scene.during(|scope| write(&scope.join(&name), "evil"));
    assert_eq!(found.await, [(name.clone(), Created)]);
    assert!(!scene.at(&name).exists());
}

#[tokio::test]
async fn of_a_large_tree_the_files_at_the_top_are_kept() {
    let scene = Scene::new(Tier::Core, |scope| {
        for number in 0..600 {
            write(&scope.join(format!(".vscode/a/b/{number}")), &"x".repeat(10_000));
        }
        write(&scope.join(".vscode/notes"), "good");
    });
    assert!(
        scene
            .guard
            .warning()
            .is_some_and(|warning| warning.contains("too large"))
    );
    let found = scene.changes_during(|scope| {
        write(&scope.join(".vscode/settings.json"), "evil");
        write(&scope.join(".vscode/notes"), "evil");
        for number in 0..600 {
            write(&scope.join(format!(".vscode/a/b/{number}")), "evil");
        }
    });
    let found = found.await;
    assert_eq!(found.len(), 602);
    let lost = found.iter().filter(|change| !change.undone).count();
    assert!((1..600).contains(&lost), "{lost}");
    assert_eq!(scene.read(".vscode/notes"), "good");
}

#[tokio::test]
async fn the_baseline_is_that_of_the_first_of_overlapping_commands() {
    let scene = Scene::new(Tier::Core, project);
    let first = Guard::begin(&[Arc::clone(&scene.guard)]).await;
    write(&scene.at(".envrc"), "evil");
    let second = Guard::begin(&[Arc::clone(&scene.guard)]).await;
    // A check that is dropped restores all the same.
    drop(first);
    assert_eq!(scene.read(".envrc"), "good");
    write(&scene.at(".envrc"), "evil");
    assert_eq!(second.finish().await.len(), 1);
    assert_eq!(scene.read(".envrc"), "good");
}
