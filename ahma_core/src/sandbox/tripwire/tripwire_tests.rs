use std::{
    fs,
    os::unix::fs::{MetadataExt as _, symlink},
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{Depth, Incident, IncidentKind, Tripwire, picture::Node};

struct Scene {
    directory: tempfile::TempDir,
    tripwire: Arc<Tripwire>,
}

impl Scene {
    fn new(prepare: impl FnOnce(&Path)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let scope = directory.path().join("scope");
        fs::create_dir(&scope).unwrap();
        prepare(&scope);
        let tripwire = Self::tripwire(directory.path());
        Self { directory, tripwire }
    }

    /// The tripwire of one more server.
    fn tripwire(directory: &Path) -> Arc<Tripwire> {
        let scope = directory.join("scope");
        let watched = [
            (".git", Depth::Itself),
            (".git/hooks", Depth::Tree),
            (".git/config", Depth::Tree),
            (".git/commondir", Depth::Tree),
            (".vscode", Depth::Tree),
            (".envrc", Depth::Tree),
            (".ahma/tools", Depth::Tree),
        ]
        .map(|(name, depth)| (scope.join(name), depth));
        let quarantine = directory.join("quarantine");
        Arc::new(Tripwire::new(&scope, watched.into(), quarantine).unwrap())
    }

    /// Makes the quarantine as useless as one on another file system.
    fn without_quarantine(self) -> Self {
        fs::write(self.directory.path().join("quarantine"), "").unwrap();
        self
    }

    fn scope(&self) -> std::path::PathBuf {
        self.directory.path().join("scope")
    }

    /// Runs `command` as if it were one, and returns what was found, by name.
    async fn during(&self, command: impl FnOnce(&Path)) -> Vec<(String, IncidentKind)> {
        let found = self.incidents_during(command).await;
        assert!(found.iter().all(|incident| incident.undone), "{found:?}");
        let relative = |path: &Path| path.strip_prefix(self.scope()).unwrap().display().to_string();
        found
            .iter()
            .map(|incident| (relative(&incident.path), incident.kind))
            .collect()
    }

    async fn incidents_during(&self, command: impl FnOnce(&Path)) -> Vec<Incident> {
        let armed = Tripwire::arm(&[Arc::clone(&self.tripwire)]).await;
        command(&self.scope());
        armed.check().await
    }
}

#[test]
fn a_scope_that_cannot_be_opened_is_an_error_and_a_missing_one_is_none() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("file"), "").unwrap();
    symlink(".", directory.path().join("link")).unwrap();
    // Of a name that is too long the kernel does not say whether it is there, for root neither.
    let too_long = "n".repeat(300);
    for (name, is_usable) in [
        ("missing", true),
        ("file", true),
        ("link", false),
        (&too_long, false),
    ] {
        let scope = directory.path().join(name);
        let watched = vec![(scope.join(".envrc"), Depth::Tree)];
        let tripwire = Tripwire::new(&scope, watched, directory.path().join("quarantine"));
        assert_eq!(tripwire.is_ok(), is_usable, "{name}: {tripwire:?}");
    }
}

#[tokio::test]
async fn what_appears_is_kept_in_quarantine() {
    let scene = Scene::new(|_| {});
    let found = scene
        .during(|scope| {
            fs::create_dir(scope.join(".vscode")).unwrap();
            fs::write(scope.join(".vscode/tasks.json"), "evil").unwrap();
            fs::write(scope.join("ordinary"), "fine").unwrap();
        })
        .await;
    assert_eq!(found, [(".vscode".to_owned(), IncidentKind::Appeared)]);
    assert!(!scene.scope().join(".vscode").exists());
    assert!(scene.scope().join("ordinary").exists());
    let kept = fs::read_dir(scene.directory.path().join("quarantine"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    assert_eq!(
        fs::read_to_string(kept.path().join("tasks.json")).unwrap(),
        "evil"
    );
}

#[tokio::test]
async fn what_changes_is_put_back() {
    let scene = Scene::new(|scope| {
        fs::write(scope.join(".envrc"), "good").unwrap();
        fs::create_dir_all(scope.join(".git/hooks")).unwrap();
        fs::write(scope.join(".git/config"), "[core]\n").unwrap();
    });
    let found = scene
        .during(|scope| {
            fs::write(scope.join(".envrc"), "evil").unwrap();
            fs::write(scope.join(".git/hooks/pre-commit"), "#!/bin/sh\nevil").unwrap();
            fs::remove_file(scope.join(".git/config")).unwrap();
        })
        .await;
    assert_eq!(
        found,
        [
            (".envrc".to_owned(), IncidentKind::Changed),
            (".git/config".to_owned(), IncidentKind::Removed),
            (".git/hooks/pre-commit".to_owned(), IncidentKind::Appeared),
        ]
    );
    assert_eq!(fs::read_to_string(scene.scope().join(".envrc")).unwrap(), "good");
    assert_eq!(
        fs::read_to_string(scene.scope().join(".git/config")).unwrap(),
        "[core]\n"
    );
    assert!(!scene.scope().join(".git/hooks/pre-commit").exists());
}

#[tokio::test]
async fn a_link_is_never_followed() {
    let scene = Scene::new(|scope| fs::write(scope.join(".envrc"), "good").unwrap());
    let outside = scene.directory.path().join("outside");
    fs::write(&outside, "mine").unwrap();
    let found = scene
        .during(|scope| {
            fs::remove_file(scope.join(".envrc")).unwrap();
            symlink(&outside, scope.join(".envrc")).unwrap();
        })
        .await;
    assert_eq!(found, [(".envrc".to_owned(), IncidentKind::Changed)]);
    assert_eq!(fs::read_to_string(&outside).unwrap(), "mine");
    assert_eq!(fs::read_to_string(scene.scope().join(".envrc")).unwrap(), "good");
    assert!(!scene.scope().join(".envrc").is_symlink());
}

#[tokio::test]
async fn a_new_workspace_of_an_editor_does_not_stay() {
    let write = |scope: &Path, name: &str| fs::write(scope.join(name), "{}").unwrap();
    for has_quarantine in [true, false] {
        let scene = Scene::new(|scope| write(scope, "mine.code-workspace"));
        let scene = if has_quarantine {
            scene
        } else {
            scene.without_quarantine()
        };
        let found = scene.during(|scope| {
            write(scope, "new.code-workspace");
            write(scope, "code-workspace");
        });
        let expected = ("new.code-workspace".to_owned(), IncidentKind::Appeared);
        assert_eq!(found.await, [expected]);
        let left = fs::read_dir(scene.scope()).unwrap();
        let left = left.filter(|entry| {
            let path = entry.as_ref().unwrap().path();
            path.extension() == Some("code-workspace".as_ref())
        });
        assert_eq!(left.count(), 1);
        assert_eq!(scene.during(|_| {}).await, []);
    }
}

/// Git would write through them, wherever they lead.
#[tokio::test]
async fn links_in_a_repository_do_not_stay_and_the_rest_does() {
    let deep = ".git/logs/refs/heads/a/b";
    let scene = Scene::new(|scope| {
        fs::create_dir_all(scope.join(".git/logs/refs/heads")).unwrap();
        fs::create_dir_all(scope.join(".git/objects")).unwrap();
        fs::write(scope.join(".git/logs/HEAD"), "first\n").unwrap();
        symlink("/old", scope.join(".git/mine")).unwrap();
        symlink("/old", scope.join(".git/yours")).unwrap();
    });
    let found = scene
        .during(|scope| {
            let git = scope.join(".git");
            fs::remove_file(git.join("logs/HEAD")).unwrap();
            fs::remove_dir(git.join("objects")).unwrap();
            fs::remove_file(git.join("yours")).unwrap();
            fs::create_dir_all(scope.join(deep)).unwrap();
            for directory in ["worktrees", "rr-cache/id", "modules/a", "some/where"] {
                fs::create_dir_all(git.join(directory)).unwrap();
            }
            for name in [
                "logs/HEAD",
                "index",
                "COMMIT_EDITMSG",
                "objects",
                "yours",
                "worktrees/x",
                "rr-cache/id/thisimage",
                "modules/b",
                "some/where/link",
            ] {
                symlink("/victim", git.join(name)).unwrap();
            }
            symlink("/victim", scope.join(deep).join("c")).unwrap();
            // As git makes it for a moment.
            symlink("testing", git.join("tXyZ123")).unwrap();
            symlink("testing", git.join("MERGE_MSG")).unwrap();
            fs::write(git.join("ORIG_HEAD"), "plain").unwrap();
        })
        .await;
    use IncidentKind::{Appeared, Changed};
    let expected = [
        (".git/COMMIT_EDITMSG", Appeared),
        (".git/MERGE_MSG", Appeared),
        (".git/index", Appeared),
        (".git/logs/HEAD", Appeared),
        (".git/logs/refs/heads/a/b/c", Appeared),
        (".git/modules/b", Appeared),
        (".git/objects", Appeared),
        (".git/rr-cache/id/thisimage", Appeared),
        (".git/some/where/link", Appeared),
        (".git/worktrees/x", Appeared),
        (".git/yours", Changed),
    ];
    assert_eq!(found, expected.map(|(path, kind)| (path.to_owned(), kind)));
    let git = scene.scope().join(".git");
    for (path, _) in expected.iter().filter(|(_, kind)| *kind == Appeared) {
        assert!(!scene.scope().join(path).is_symlink(), "{path}");
    }
    assert_eq!(fs::read_link(git.join("mine")).unwrap(), Path::new("/old"));
    assert_eq!(fs::read_link(git.join("yours")).unwrap(), Path::new("/old"));
    assert!(git.join("ORIG_HEAD").exists());
    assert_eq!(scene.during(|_| {}).await, []);
}

/// Git would write to a protected file by it.
#[tokio::test]
async fn a_protected_file_gets_no_other_name() {
    let scene = Scene::new(|scope| {
        fs::create_dir_all(scope.join(".git/hooks")).unwrap();
        fs::create_dir_all(scope.join(".git/logs")).unwrap();
        fs::write(scope.join(".git/hooks/pre-commit"), "good").unwrap();
        fs::write(scope.join(".envrc"), "good").unwrap();
        fs::hard_link(scope.join(".envrc"), scope.join("mine")).unwrap();
    });
    assert_eq!(scene.during(|_| {}).await, []);
    let found = scene.during(|scope| {
        fs::hard_link(scope.join(".git/hooks/pre-commit"), scope.join(".git/logs/HEAD")).unwrap();
    });
    let expected = (".git/hooks/pre-commit".to_owned(), IncidentKind::Changed);
    assert_eq!(found.await, [expected]);
    fs::write(scene.scope().join(".git/logs/HEAD"), "evil").unwrap();
    let hook = fs::read_to_string(scene.scope().join(".git/hooks/pre-commit")).unwrap();
    assert_eq!(hook, "good");
    assert_eq!(scene.during(|_| {}).await, []);
}

#[tokio::test]
async fn links_in_a_new_repository_do_not_stay() {
    let scene = Scene::new(|_| {});
    let found = scene
        .during(|scope| {
            fs::create_dir_all(scope.join(".git/logs")).unwrap();
            fs::write(scope.join(".git/config"), "[core]\n\tbare = false\n").unwrap();
            symlink("/victim", scope.join(".git/logs/HEAD")).unwrap();
        })
        .await;
    assert_eq!(found, [(".git/logs/HEAD".to_owned(), IncidentKind::Appeared)]);
    assert!(scene.scope().join(".git/config").exists());
}

#[tokio::test]
async fn a_new_repository_may_stay_if_it_runs_nothing() {
    let init = |scope: &Path, config: &str| {
        fs::create_dir_all(scope.join(".git/hooks")).unwrap();
        fs::write(scope.join(".git/hooks/pre-commit.sample"), "").unwrap();
        fs::write(scope.join(".git/config"), config).unwrap();
    };
    let scene = Scene::new(|_| {});
    let plain = "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = git@host:x\n[user]\n\tname = me\n\
        [branch \"main\"]\n\tremote = origin\n[branch \"other\"]\n\tremote = .\n\
        [remote \"b\"]\n\turl = https://host/x\n\tpushurl = ssh://host:22/x\n";
    let made = scene.during(|scope| {
        init(scope, plain);
        fs::create_dir(scope.join(".git/branches")).unwrap();
    });
    assert_eq!(made.await, []);
    assert!(scene.scope().join(".git/config").exists());

    for config in [
        "[core]\n\tfsmonitor = evil\n",
        "[core]\n\thooksPath = evil\n",
        "[alias]\n\tst = !evil\n",
        "[include]\n\tpath = evil\n",
        "[core] fsmonitor = evil\n",
        "[core] fsmonitor = evil #]\n",
        "[remote \"o\"] vcs = \"evil]\n",
        "[remote \"o\"]\n\turl = ext::evil\n",
        "[remote \"o\"]\n\turl = ./n.git\n",
        "[remote \"o\"]\n\turl = n.git\n",
        "[remote \"o\"]\n\turl = \"/n:x\"\n",
        "[remote \"o\"]\n\turl = file:///n.git\n",
        "[remote \"o\"]\n\turl = https://host\n\tpushurl = ./n.git\n",
        "[branch \"main\"]\n\tremote = ./n.git\n",
        "[remote \"n.git\"]\n\tfetch = x\n[branch \"main\"]\n\tpushremote = n.git\n",
        "[remote \"o\"]\n\tuploadpack = evil\n",
        "[core]\n\tbare = false \\\nfsmonitor = evil\n",
    ] {
        let scene = Scene::new(|_| {});
        let found = scene.during(|scope| init(scope, config)).await;
        assert_eq!(found, [(".git".to_owned(), IncidentKind::Appeared)], "{config}");
    }
}

#[tokio::test]
async fn a_new_repository_names_nothing_to_push_to_in_old_ways() {
    for name in ["remotes", "branches"] {
        let scene = Scene::new(|_| {});
        let make = |scope: &Path| {
            fs::create_dir_all(scope.join(".git").join(name)).unwrap();
            fs::write(scope.join(".git/config"), "[core]\n\tbare = false\n").unwrap();
            fs::write(scope.join(".git").join(name).join("origin"), "URL: ./n.git").unwrap();
        };
        let found = scene.during(make).await;
        assert_eq!(found, [(".git".to_owned(), IncidentKind::Appeared)], "{name}");
    }
}

pub(super) fn git(directory: &Path, arguments: &[&str]) {
    let done = std::process::Command::new("git")
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .args(arguments)
        .output()
        .unwrap();
    assert!(done.status.success(), "{arguments:?}: {done:?}");
}

/// Makes a repository at `path`, and lists it in the index of the one at `top`.
fn list_repository(top: &Path, path: &str) {
    git(top, &["init", "-q", path]);
    let entry = format!("160000,{},{path}", "1".repeat(40));
    git(top, &["update-index", "--add", "--cacheinfo", &entry]);
}

const AWAKE: [&str; 3] = ["config", "core.fsmonitor", "evil"];

/// `git status` at the top looks into them.
#[tokio::test]
async fn a_listed_repository_stays_as_long_as_it_runs_nothing() {
    let scene = Scene::new(|scope| {
        git(scope, &["init", "-q"]);
        list_repository(scope, "mine");
        git(&scope.join("mine"), &AWAKE);
    });
    let appeared = |path: &str| [(path.to_owned(), IncidentKind::Appeared)];
    let found = scene.during(|scope| {
        list_repository(scope, "a/lib");
        list_repository(scope, "b");
        git(&scope.join("b"), &AWAKE);
    });
    assert_eq!(found.await, appeared("b/.git"));
    assert!(scene.scope().join("a/lib/.git").exists());
    assert!(!scene.scope().join("b/.git").exists());
    // The user's own.
    assert!(scene.scope().join("mine/.git").exists());

    let found = scene.during(|scope| git(&scope.join("a/lib"), &AWAKE));
    assert_eq!(found.await, appeared("a/lib/.git"));

    // One in another; git looks into both.
    let found = scene.during(|scope| {
        list_repository(scope, "c");
        list_repository(&scope.join("c"), "d");
        git(&scope.join("c/d"), &AWAKE);
    });
    assert_eq!(found.await, appeared("c/.git"));

    let found = scene.during(|scope| {
        list_repository(scope, "g");
        symlink("other", scope.join("g/.git/index")).unwrap();
    });
    assert_eq!(found.await, appeared("g/.git"));

    // As submodules are.
    let submodule = |scope: &Path, name: &str| {
        list_repository(scope, name);
        let modules = scope.join(".git/modules");
        fs::create_dir_all(&modules).unwrap();
        fs::rename(scope.join(name).join(".git"), modules.join(name)).unwrap();
        fs::write(
            scope.join(name).join(".git"),
            format!("gitdir: ../.git/modules/{name}\n"),
        )
        .unwrap();
        let tree = format!("../../../{name}");
        git(&modules.join(name), &["config", "core.worktree", &tree]);
    };
    assert_eq!(scene.during(|scope| submodule(scope, "e")).await, []);
    let found = scene.during(|scope| git(&scope.join(".git/modules/e"), &AWAKE));
    assert_eq!(found.await, appeared("e/.git"));

    // One that is not listed is nobody's business, until it is.
    let found = scene.during(|scope| {
        git(scope, &["init", "-q", "f"]);
        git(&scope.join("f"), &AWAKE);
    });
    assert_eq!(found.await, []);
    let found = scene.during(|scope| list_repository(scope, "f"));
    assert_eq!(found.await, appeared("f/.git"));
    assert_eq!(scene.during(|_| {}).await, []);
}

#[tokio::test]
async fn a_listed_repository_is_judged_where_git_looks_for_it() {
    let scene = Scene::new(|scope| git(scope, &["init", "-q"]));
    // Another tree than the one it is listed for.
    let found = scene.during(|scope| {
        list_repository(scope, "c");
        git(scope, &["init", "-q", "tree/d"]);
        git(&scope.join("tree/d"), &AWAKE);
        let entry = format!("160000,{},d", "1".repeat(40));
        git(
            &scope.join("c"),
            &["update-index", "--add", "--cacheinfo", &entry],
        );
        git(&scope.join("c"), &["config", "core.worktree", "../../tree"]);
    });
    assert_eq!(found.await, [("c/.git".to_owned(), IncidentKind::Appeared)]);
    // Its own tree, by a name that git would not have taken.
    let found = scene.incidents_during(|scope| {
        list_repository(scope, "12lib");
        git(scope, &["init", "-q", "lib"]);
        git(&scope.join("lib"), &AWAKE);
        let index = scope.join(".git/index");
        let mut content = fs::read(&index).unwrap();
        let at = memchr::memmem::find(&content, b"12lib").unwrap();
        content[at..at + 2].copy_from_slice(b"./");
        fs::write(&index, content).unwrap();
    });
    let found = found.await;
    assert!(
        matches!(&found[..], [Incident { path, quarantined: Some(_), .. }] if path.ends_with(".git/index")),
        "{found:?}"
    );
    assert!(scene.scope().join("lib/.git").exists());
    // In an index that is read by the length of names that git knows.
    let found = scene.during(|scope| {
        git(scope, &["init", "-q", "--object-format", "sha256", "s"]);
        list_repository(scope, "s");
        let entry = format!("160000,{},t", "1".repeat(64));
        git(
            &scope.join("s"),
            &["update-index", "--add", "--cacheinfo", &entry],
        );
        git(&scope.join("s"), &["init", "-q", "t"]);
        git(
            &scope.join("s/t"),
            &["remote", "add", "origin", "/home/somebody/t"],
        );
    });
    assert_eq!(found.await, []);
    // One that git has to fetch from, just by looking.
    let promises = ["config", "remote.origin.promisor", "true"];
    let found = scene.during(|scope| git(&scope.join("s/t"), &promises));
    assert_eq!(found.await, [("s/.git".to_owned(), IncidentKind::Appeared)]);
    let found = scene.during(|scope| {
        git(scope, &["init", "-q", "--object-format", "sha256", "s"]);
        let entry = format!("160000,{},t", "1".repeat(64));
        git(
            &scope.join("s"),
            &["update-index", "--add", "--cacheinfo", &entry],
        );
        git(
            &scope.join("s/t"),
            &["config", "--unset", "remote.origin.promisor"],
        );
    });
    assert_eq!(found.await, []);
    let found = scene.during(|scope| git(&scope.join("s/t"), &AWAKE));
    assert_eq!(found.await, [("s/.git".to_owned(), IncidentKind::Appeared)]);
}

/// Git clears packs away, and writes no object in place.
#[tokio::test]
async fn a_store_of_objects_is_watched_where_git_tidies_it() {
    let scene = Scene::new(|scope| {
        fs::create_dir_all(scope.join(".git/objects/pack")).unwrap();
        fs::create_dir_all(scope.join(".git/objects/ab")).unwrap();
    });
    let found = scene.during(|scope| {
        let objects = scope.join(".git/objects");
        fs::rename(objects.join("pack"), objects.join("p0")).unwrap();
        symlink("/victim", objects.join("pack")).unwrap();
        symlink("/victim", objects.join("ab/c")).unwrap();
    });
    let expected = [(".git/objects/pack".to_owned(), IncidentKind::Appeared)];
    assert_eq!(found.await, expected);
}

#[tokio::test]
async fn an_index_that_cannot_be_read_is_moved_away() {
    let scene = Scene::new(|scope| git(scope, &["init", "-q"]));
    let found = scene
        .incidents_during(|scope| fs::write(scope.join(".git/index"), "nothing").unwrap())
        .await;
    assert!(
        matches!(
            found[..],
            [Incident {
                kind: IncidentKind::Changed,
                quarantined: Some(_),
                ..
            }]
        ),
        "{found:?}"
    );
    assert!(!scene.scope().join(".git/index").exists());
    assert_eq!(scene.during(|_| {}).await, []);
}

/// `git init` beside another command that ends first.
#[tokio::test]
async fn a_repository_that_is_being_made_is_judged_when_it_is_whole() {
    for (config, may_stay) in [(Some("[core]\n\tbare = false\n"), true), (None, false)] {
        let scene = Scene::new(|_| {});
        let making = Tripwire::arm(&[Arc::clone(&scene.tripwire)]).await;
        let found = scene.during(|scope| fs::create_dir_all(scope.join(".git/hooks")).unwrap());
        assert_eq!(found.await, []);
        assert!(scene.scope().join(".git").exists());
        if let Some(config) = config {
            fs::write(scene.scope().join(".git/config"), config).unwrap();
        }
        assert_eq!(making.check().await.is_empty(), may_stay, "{config:?}");
        assert_eq!(scene.scope().join(".git").exists(), may_stay, "{config:?}");
    }
}

#[tokio::test]
async fn a_link_on_the_way_leads_nowhere() {
    let scene = Scene::new(|_| {});
    let outside = scene.directory.path().join("outside");
    fs::create_dir_all(outside.join("tools")).unwrap();
    fs::write(outside.join("tools/mine"), "mine").unwrap();
    let found = scene
        .during(|scope| symlink(&outside, scope.join(".ahma")).unwrap())
        .await;
    assert_eq!(found, [(".ahma".to_owned(), IncidentKind::Appeared)]);
    assert_eq!(fs::read_to_string(outside.join("tools/mine")).unwrap(), "mine");
    assert!(!scene.scope().join(".ahma").is_symlink());

    let found = scene
        .during(|scope| fs::create_dir(scope.join(".ahma")).unwrap())
        .await;
    assert_eq!(found, [], "the way itself may be made");
}

#[tokio::test]
async fn a_swapped_repository_is_brought_back_whole() {
    let scene = Scene::new(|scope| {
        fs::create_dir_all(scope.join(".git/hooks")).unwrap();
        fs::create_dir_all(scope.join(".git/objects")).unwrap();
        fs::write(scope.join(".git/config"), "[core]\n").unwrap();
    });
    let found = scene
        .during(|scope| {
            fs::create_dir(scope.join("deep")).unwrap();
            fs::rename(scope.join(".git"), scope.join("deep/away")).unwrap();
            fs::create_dir(scope.join(".git")).unwrap();
            fs::write(scope.join(".git/config"), "[core]\nfsmonitor = evil\n").unwrap();
        })
        .await;
    assert_eq!(found, [(".git".to_owned(), IncidentKind::Changed)]);
    assert!(scene.scope().join(".git/objects").is_dir());
    assert_eq!(
        fs::read_to_string(scene.scope().join(".git/config")).unwrap(),
        "[core]\n"
    );
}

#[tokio::test]
async fn many_names_hide_nothing() {
    let scene = Scene::new(|scope| fs::create_dir_all(scope.join(".git/hooks")).unwrap());
    let found = scene
        .during(|scope| {
            for number in 0..600 {
                fs::write(scope.join(format!(".git/hooks/{number}")), "").unwrap();
            }
            fs::create_dir(scope.join(".vscode")).unwrap();
            fs::write(scope.join(".vscode/tasks.json"), "evil").unwrap();
        })
        .await;
    assert_eq!(found.len(), 601);
    assert!(!scene.scope().join(".vscode").exists());
}

#[tokio::test]
async fn a_file_that_was_replaced_from_outside_before_stays_as_it_is() {
    let scene = Scene::new(|scope| fs::write(scope.join(".envrc"), "one").unwrap());
    assert_eq!(scene.during(|_| {}).await, []);
    fs::write(scene.scope().join(".envrc"), "two").unwrap();
    assert_eq!(scene.during(|_| {}).await, []);
    assert_eq!(fs::read_to_string(scene.scope().join(".envrc")).unwrap(), "two");
}

#[tokio::test]
async fn a_directory_whose_mount_is_gone_is_looked_into() {
    let directory = tempfile::tempdir().unwrap();
    let scope = directory.path().join("scope");
    let husky = scope.join(".husky");
    fs::create_dir_all(&husky).unwrap();
    let watched = vec![(husky.clone(), Depth::Itself)];
    let tripwire = Tripwire::new(&scope, watched, directory.path().join("quarantine")).unwrap();
    let tripwire = Arc::new(tripwire);
    // Keeps the number from being used again, as a mount would.
    fs::rename(&husky, directory.path().join("old")).unwrap();
    fs::create_dir(&husky).unwrap();
    let armed = Tripwire::arm(&[Arc::clone(&tripwire)]).await;
    fs::write(husky.join("pre-commit"), "evil").unwrap();
    let found = armed.check().await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(!husky.join("pre-commit").exists());
}

#[tokio::test]
async fn rights_taken_away_do_not_keep_the_tripwire_out() {
    use std::os::unix::fs::PermissionsExt;
    let scene = Scene::new(|_| {});
    let found = scene
        .during(|scope| {
            fs::create_dir(scope.join(".vscode")).unwrap();
            fs::write(scope.join(".vscode/tasks.json"), "evil").unwrap();
            fs::set_permissions(scope.join(".vscode"), fs::Permissions::from_mode(0o0)).unwrap();
        })
        .await;
    assert_eq!(found, [(".vscode".to_owned(), IncidentKind::Appeared)]);
    assert!(!scene.scope().join(".vscode").exists());
}

#[tokio::test]
async fn a_closed_scope_does_not_keep_the_tripwire_out() {
    use std::os::unix::fs::PermissionsExt;
    for mode in [0o000, 0o311, 0o555] {
        let scene = Scene::new(|scope| fs::write(scope.join(".envrc"), "good").unwrap()).without_quarantine();
        let set_mode = |mode| fs::set_permissions(scene.scope(), fs::Permissions::from_mode(mode)).unwrap();
        let found = scene
            .during(|scope| {
                fs::create_dir(scope.join(".vscode")).unwrap();
                fs::write(scope.join(".vscode/tasks.json"), "evil").unwrap();
                fs::write(scope.join(".envrc"), "evil").unwrap();
                set_mode(mode);
            })
            .await;
        let mode_after = fs::metadata(scene.scope()).unwrap().permissions().mode() & 0o7777;
        set_mode(0o755);
        assert_eq!(
            found,
            [
                (".envrc".to_owned(), IncidentKind::Changed),
                (".vscode".to_owned(), IncidentKind::Appeared)
            ],
            "{mode:o}"
        );
        assert_eq!(fs::read_to_string(scene.scope().join(".envrc")).unwrap(), "good");
        assert!(!scene.scope().join(".vscode").exists());
        assert_eq!(mode_after, mode, "the scope's own mode is the command's");
    }
}

#[tokio::test]
async fn the_longest_name_is_moved_away_as_well() {
    let scene = Scene::new(|scope| fs::create_dir(scope.join(".vscode")).unwrap()).without_quarantine();
    let name = format!(".vscode/{}", "n".repeat(255));
    let found = scene
        .during(|scope| fs::write(scope.join(&name), "evil").unwrap())
        .await;
    assert_eq!(found, [(name.clone(), IncidentKind::Appeared)]);
    assert!(!scene.scope().join(name).exists());
}

#[tokio::test]
async fn no_tree_is_too_large_to_be_watched() {
    let scene = Scene::new(|scope| {
        let many = scope.join(".vscode/a/b");
        fs::create_dir_all(&many).unwrap();
        for number in 0..600 {
            fs::write(many.join(number.to_string()), "x".repeat(10_000)).unwrap();
        }
        fs::write(scope.join(".vscode/notes"), "good").unwrap();
    });
    let found = scene
        .incidents_during(|scope| {
            fs::write(scope.join(".vscode/settings.json"), "evil").unwrap();
            fs::write(scope.join(".vscode/notes"), "evil").unwrap();
            for number in 0..600 {
                fs::write(scope.join(format!(".vscode/a/b/{number}")), "evil").unwrap();
            }
        })
        .await;
    let count = |kind, undone| {
        let is_it = |incident: &&Incident| incident.kind == kind && incident.undone == undone;
        found.iter().filter(is_it).count()
    };
    assert_eq!(found.len(), 602);
    assert_eq!(count(IncidentKind::Appeared, true), 1);
    // What lies highest is kept first; of the 6 MB below it only a part is.
    assert!(
        (2..600).contains(&count(IncidentKind::Changed, true)),
        "{}",
        count(IncidentKind::Changed, true)
    );
    assert_eq!(
        count(IncidentKind::Changed, true) + count(IncidentKind::Changed, false),
        601
    );
    assert_eq!(
        fs::read_to_string(scene.scope().join(".vscode/notes")).unwrap(),
        "good"
    );
}

#[tokio::test]
async fn what_could_not_be_put_back_is_not_said_to_be() {
    let scene = Scene::new(|scope| {
        fs::create_dir(scope.join(".vscode")).unwrap();
        fs::write(scope.join(".vscode/big"), vec![b'x'; 5 << 20]).unwrap();
    });
    let found = scene
        .incidents_during(|scope| fs::remove_file(scope.join(".vscode/big")).unwrap())
        .await;
    let [incident] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!((incident.kind, incident.undone), (IncidentKind::Removed, false));
    assert!(
        incident.sentence().contains("could not be put back"),
        "{}",
        incident.sentence()
    );
}

#[test]
fn the_sentence_says_what_was_done() {
    use IncidentKind::{Appeared, Changed, Removed, Unknown};
    for (kind, undone, kept, expected) in [
        (Appeared, true, true, "it was removed"),
        (Appeared, false, false, "could not be moved away"),
        (Changed, true, true, "it was put back"),
        (
            Changed,
            false,
            true,
            "it was moved away, and could not be put back",
        ),
        (Changed, false, false, "it could not be put back"),
        (Removed, true, false, "it was put back"),
        (Removed, false, false, "it could not be put back"),
        (Unknown, false, false, "could not be seen"),
    ] {
        let incident = Incident {
            path: "/scope/.envrc".into(),
            kind,
            undone,
            quarantined: kept.then(|| "/kept".into()),
        };
        let sentence = incident.sentence();
        assert!(sentence.contains(expected), "{sentence}");
        assert_eq!(sentence.contains("/kept"), kept, "{sentence}");
    }
}

/// The picture that a second server would take shows what the first one's command has planted.
#[tokio::test]
async fn a_server_that_comes_meanwhile_takes_nothing_planted_for_good() {
    let scene = Scene::new(|scope| {
        fs::create_dir_all(scope.join(".git/hooks")).unwrap();
        fs::write(scope.join(".git/hooks/pre-commit"), "good").unwrap();
        fs::write(scope.join(".envrc"), "good").unwrap();
        symlink(".envrc", scope.join(".vscode")).unwrap();
    });
    let plant = |scope: &Path| {
        fs::write(scope.join(".envrc"), "evil").unwrap();
        fs::write(scope.join(".git/hooks/pre-commit"), "evil").unwrap();
        fs::create_dir_all(scope.join(".ahma/tools")).unwrap();
        fs::write(scope.join(".ahma/tools/x.json"), "evil").unwrap();
    };
    let scope = scene.scope();
    let is_good = || {
        let text = |name: &str| fs::read_to_string(scope.join(name)).unwrap();
        assert_eq!(text(".envrc"), "good");
        assert_eq!(text(".git/hooks/pre-commit"), "good");
        assert!(!scope.join(".ahma/tools").exists());
    };
    // Whichever of them ends first.
    for first_ends_first in [true, false] {
        let first = Tripwire::arm(&[Arc::clone(&scene.tripwire)]).await;
        plant(&scope);
        let other = Scene::tripwire(scene.directory.path());
        let second = Tripwire::arm(&[other]).await;
        let (earlier, later) = if first_ends_first {
            (first, second)
        } else {
            (second, first)
        };
        assert_eq!(earlier.check().await.len(), 3);
        is_good();
        assert_eq!(later.check().await.len(), 0);
        is_good();
    }
    // Nobody is at work now, so what the user changes is good.
    fs::write(scope.join(".envrc"), "better").unwrap();
    let last = Tripwire::arm(&[Scene::tripwire(scene.directory.path())]).await;
    fs::write(scope.join(".envrc"), "evil").unwrap();
    assert_eq!(last.check().await.len(), 1);
    assert_eq!(fs::read_to_string(scope.join(".envrc")).unwrap(), "better");

    let Scene { directory, tripwire } = scene;
    drop(tripwire);
    let left = fs::read_dir(directory.path().join("pictures")).unwrap();
    let left: Vec<_> = left
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .collect();
    assert_eq!(left, [0], "an empty lock");
}

/// These files are too young for their times to mean anything, as all are on some file systems.
#[tokio::test]
async fn a_picture_that_says_the_same_is_not_written_again() {
    let scene = Scene::new(|scope| {
        fs::create_dir_all(scope.join(".vscode")).unwrap();
        fs::write(scope.join(".vscode/settings.json"), "{}").unwrap();
        fs::write(scope.join(".envrc"), "good").unwrap();
    });
    let written = || {
        let pictures = fs::read_dir(scene.directory.path().join("pictures")).unwrap();
        let mut found = pictures.map(|entry| entry.unwrap().path());
        let file = found.find(|path| path.extension() == Some("json".as_ref()));
        fs::metadata(file.unwrap()).unwrap().ino()
    };
    assert_eq!(scene.during(|_| {}).await, []);
    let first = written();
    assert_eq!(scene.during(|_| {}).await, []);
    assert_eq!(written(), first);
    // Of the same length, and perhaps of the same tick.
    fs::write(scene.scope().join(".envrc"), "fine").unwrap();
    assert_eq!(scene.during(|_| {}).await, []);
    assert_ne!(written(), first);
}

/// A server that stands still while it takes its picture must not make this one stand still.
#[tokio::test]
async fn a_server_that_stands_still_holds_up_its_peers_calls_only() {
    let scene = Scene::new(|_| {});
    let locks = fs::read_dir(scene.directory.path().join("pictures")).unwrap();
    let lock = locks
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension() == Some("lock".as_ref()));
    let standing_still = fs::File::open(lock.unwrap()).unwrap();
    standing_still.lock().unwrap();

    let tripwire = Arc::clone(&scene.tripwire);
    let call = tokio::spawn(async move { Tripwire::arm(&[tripwire]).await });
    // This runtime has one thread: it goes on while the call waits.
    while scene.tripwire.known.try_lock().is_ok() {
        tokio::task::yield_now().await;
    }
    assert!(!call.is_finished());
    standing_still.unlock().unwrap();
    assert_eq!(call.await.unwrap().check().await.len(), 0);
}

/// Makes calls until the times of what is in the scope are old enough to mean something. On some file systems they never
/// do; then returns false.
async fn come_to_rest(scenes: &[Scene]) -> bool {
    let deadline = Instant::now() + Duration::from_secs(60);
    for scene in scenes {
        let root = scene.tripwire.root.as_ref().unwrap();
        let place = super::place::Place::below(&root.directory, Path::new("x")).unwrap();
        if root.telling.is_none() || !place.keeps_times() {
            return false;
        }
        let is_restless = |node: &Node| {
            matches!(
                node,
                Node::Directory { settled: false, .. } | Node::File { settled: false, .. }
            )
        };
        while scene.tripwire.lock().picture.values().any(is_restless) {
            assert!(Instant::now() < deadline, "{:?}", scene.tripwire);
            tokio::time::sleep(Duration::from_millis(50)).await;
            assert_eq!(scene.during(|_| {}).await, []);
        }
    }
    true
}

/// What is left out of a look at a directory that did not change must not be what a command does.
#[tokio::test]
async fn a_scope_at_rest_hides_nothing() {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    type Plant = (&'static [&'static str], fn(&Path));
    let plants: [Plant; 13] = [
        (&[".envrc"], |scope| {
            fs::write(scope.join(".envrc"), "evil").unwrap()
        }),
        (&[".envrc"], |scope| {
            fs::rename(scope.join("plain"), scope.join(".envrc")).unwrap()
        }),
        (&[".envrc"], |scope| {
            fs::hard_link(scope.join("plain"), scope.join(".envrc")).unwrap()
        }),
        (&[".envrc"], |scope| {
            symlink("plain", scope.join(".envrc")).unwrap()
        }),
        (&[".vscode/b"], |scope| {
            fs::write(scope.join(".vscode/b"), "evil").unwrap()
        }),
        (&[".vscode/a"], |scope| {
            fs::write(scope.join(".vscode/a"), "evil").unwrap()
        }),
        (&[".vscode/deep/a"], |scope| {
            fs::remove_file(scope.join(".vscode/deep/a")).unwrap()
        }),
        (&[".vscode/deep/b"], |scope| {
            fs::write(scope.join(".vscode/deep/b"), "evil").unwrap()
        }),
        (&[".ahma/tools"], |scope| {
            fs::create_dir(scope.join(".ahma/tools")).unwrap()
        }),
        (&[".git/config"], |scope| {
            fs::write(scope.join(".git/config"), "evil").unwrap()
        }),
        (&[".git/logs/HEAD"], |scope| {
            symlink("/victim", scope.join(".git/logs/HEAD")).unwrap()
        }),
        // Another directory that may be there, with something in it that may not.
        (&[".ahma/tools"], |scope| {
            fs::create_dir_all(scope.join("other/tools")).unwrap();
            renameat_with(
                CWD,
                scope.join("other"),
                CWD,
                scope.join(".ahma"),
                RenameFlags::EXCHANGE,
            )
            .unwrap();
        }),
        (&[".git"], |scope| {
            fs::create_dir_all(scope.join("other/hooks")).unwrap();
            fs::write(scope.join("other/hooks/pre-commit"), "evil").unwrap();
            renameat_with(
                CWD,
                scope.join("other"),
                CWD,
                scope.join(".git"),
                RenameFlags::EXCHANGE,
            )
            .unwrap();
        }),
    ];
    let scenes = plants.each_ref().map(|_| {
        Scene::new(|scope| {
            for directory in [".git/hooks", ".git/logs", ".vscode/deep", ".ahma"] {
                fs::create_dir_all(scope.join(directory)).unwrap();
            }
            for file in ["plain", ".vscode/a", ".vscode/deep/a"] {
                fs::write(scope.join(file), "good").unwrap();
            }
        })
    });
    come_to_rest(&scenes).await;
    for (number, (scene, (expected, plant))) in scenes.iter().zip(plants).enumerate() {
        let found = scene.during(plant).await;
        let found: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(found, expected, "{number}");
        let scope = scene.scope();
        let text = |name: &str| fs::read_to_string(scope.join(name)).unwrap();
        assert_eq!(
            (text(".vscode/a"), text(".vscode/deep/a")),
            ("good".into(), "good".into())
        );
        for name in [
            ".envrc",
            ".vscode/b",
            ".vscode/deep/b",
            ".ahma/tools",
            ".git/config",
            ".git/hooks/pre-commit",
        ] {
            assert!(!scope.join(name).exists(), "{number}: {name}");
        }
        assert_eq!(scene.during(|_| {}).await, [], "{number}");
    }
}

/// The server watches the tools directory itself.
#[tokio::test]
async fn who_watches_a_directory_at_rest_hears_nothing_of_a_call() {
    use rustix::fs::inotify;
    let scene = Scene::new(|scope| {
        for directory in [".git/hooks", ".vscode", ".ahma/tools"] {
            fs::create_dir_all(scope.join(directory)).unwrap();
        }
        fs::write(scope.join(".ahma/tools/a.json"), "{}").unwrap();
    });
    let scenes = [scene];
    if !come_to_rest(&scenes).await {
        eprintln!("skipped: times mean nothing on this file system");
        return;
    }
    let [scene] = scenes;
    let watch = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC).unwrap();
    for directory in ["", ".git", ".git/hooks", ".vscode", ".ahma", ".ahma/tools"] {
        let all = inotify::WatchFlags::ALL_EVENTS;
        inotify::add_watch(&watch, scene.scope().join(directory), all).unwrap();
    }
    assert_eq!(scene.during(|_| {}).await, []);
    let heard = rustix::io::read(&watch, &mut [0; 4096]);
    assert_eq!(heard, Err(rustix::io::Errno::AGAIN));
}

/// The tops of most file systems have the same number.
#[test]
fn directories_of_two_file_systems_are_told_apart() {
    let root = Arc::new(super::place::open(Path::new("/")).unwrap());
    let node = |name: &str| {
        let place = super::place::Place::below(&root, Path::new(name)).unwrap();
        super::picture::look(&place, Depth::Itself, None, 0)
            .unwrap()
            .unwrap()
    };
    let number = |name: &str| fs::metadata(Path::new("/").join(name)).unwrap().ino();
    if number("proc") != number("sys") {
        eprintln!("skipped: /proc and /sys have different numbers");
        return;
    }
    assert!(node("proc").is_still(&node("proc")));
    assert!(!node("proc").is_still(&node("sys")));
}

#[tokio::test]
async fn what_takes_long_by_now_is_not_done_on_the_thread_that_serves_clients() {
    let scene = Scene::new(|scope| fs::create_dir(scope.join(".vscode")).unwrap());
    let fill: fn(&Path) = |directory| {
        for number in 0..super::QUICK_NODES {
            fs::write(directory.join(number.to_string()), "").unwrap();
        }
    };
    // Too young to have settled.
    let enlarge: fn(&Path) = |directory| {
        fs::write(directory.join("large"), vec![b'x'; super::QUICK_BYTES + 1]).unwrap();
    };
    for change in [fill, enlarge] {
        assert!(scene.tripwire.note_at_once());
        assert_eq!(scene.tripwire.check_at_once(), Some(Vec::new()));
        // The user, and not a command.
        let directory = scene.scope().join(".vscode");
        change(&directory);
        assert_eq!(scene.during(|_| {}).await, []);
        assert!(!scene.tripwire.note_at_once());
        assert_eq!(scene.tripwire.check_at_once(), None);
        fs::remove_dir_all(&directory).unwrap();
        fs::create_dir(&directory).unwrap();
        assert_eq!(scene.during(|_| {}).await, []);
    }
}

#[test]
fn what_is_too_large_to_be_put_back_is_told() {
    let small = Scene::new(|scope| fs::write(scope.join(".envrc"), "x").unwrap());
    assert_eq!(small.tripwire.warning(), None);
    let large = Scene::new(|scope| {
        let file = fs::File::create(scope.join(".envrc")).unwrap();
        file.set_len(super::picture::MOST_KEPT + 1).unwrap();
    });
    let warning = large.tripwire.warning().unwrap();
    assert!(warning.starts_with("1 protected files in "), "{warning}");
}
