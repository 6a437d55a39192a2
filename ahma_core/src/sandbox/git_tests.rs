use super::*;

#[test]
fn settings_are_read_as_git_reads_them() {
    let text = "# comment\n\
        [core] hooksPath = .githooks ; where they are\n\
        \tbare = false\n\
        [filter \"lfs.x\"]\n\
        Clean = \"git-lfs clean -- %f\"\n\
        [Include]path=\"a \\\"b\\\".inc\"\n\
        [alias]\n\
        \tst = !./scripts/st \\\n  --short\n\
        ; [core]\n\
        nothing\n";
    let found: Vec<_> = settings(text)
        .into_iter()
        .map(|Setting { section, key, value }| format!("{section}.{key}={value}"))
        .collect();
    assert_eq!(
        found,
        [
            "core.hookspath=.githooks",
            "core.bare=false",
            "filter.clean=git-lfs clean -- %f",
            "include.path=a \"b\".inc",
            "alias.st=!./scripts/st   --short",
        ]
    );
}

/// What is acted on in the scope, besides what always is.
fn found(scope: &Path, host: &Host) -> Vec<String> {
    let always = OF_A_REPOSITORY.map(|name| format!(".git/{name}"));
    let mut found: Vec<String> = acted_on(scope, host)
        .iter()
        .filter_map(|path| Some(path.strip_prefix(scope).ok()?.display().to_string()))
        .filter(|path| !always.contains(path) && path != "HEAD")
        .collect();
    found.sort();
    found.dedup();
    found
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn what_configuration_names_is_found_through_what_it_includes() {
    let directory = tempfile::tempdir().unwrap();
    let scope = directory.path();
    fs::create_dir_all(scope.join(".git/worktrees/other")).unwrap();
    write(
        &scope.join(".git/config"),
        "[include]\n\tpath = ../.gitconfig\n[core]\n\tfsmonitor = true\n",
    );
    write(
        &scope.join(".gitconfig"),
        "[include]\n\tpath = .gitconfig\n[core]\n\thooksPath = tools/../.githooks\n[diff \"x\"]\n\ttextconv = bin/x -v\n",
    );
    assert_eq!(
        found(scope, &Host::default()),
        [
            ".git/worktrees/other/commondir",
            ".git/worktrees/other/config.worktree",
            ".git/worktrees/other/gitdir",
            ".gitconfig",
            ".githooks",
            "bin/x",
        ]
    );
}

#[test]
fn paths_of_the_home_are_found() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    let scope = home.join("scope");
    write(
        &home.join(".gitconfig"),
        "[include]\n\tpath = ~/scope/inc\n[core]\n\thooksPath = ~/scope/h\n[alias]\n\tx = !$HOME/scope/x\n",
    );
    let host = Host {
        home: Some(home.to_owned()),
        ..Host::default()
    };
    assert_eq!(found(&scope, &host), ["h", "inc", "x"]);
}

#[test]
fn scripts_that_commands_name_are_found() {
    let directory = tempfile::tempdir().unwrap();
    let scope = directory.path();
    for script in ["tools/clean.sh", "top.sh", "status", "tools/trailer"] {
        write(&scope.join(script), "");
    }
    for (config, expected) in [
        (
            "[filter \"x\"]\n\tclean = sh tools/clean.sh %f\n",
            vec!["tools/clean.sh"],
        ),
        (
            "[filter \"x\"]\n\tclean = sh -c 'X=1 && . top.sh'\n",
            vec!["top.sh"],
        ),
        ("[trailer \"x\"]\n\tcmd = tools/trailer\n", vec!["tools/trailer"]),
        ("[gpg \"ssh\"]\n\tdefaultKeyCommand = sh top.sh\n", vec!["top.sh"]),
        ("[alias]\n\tst = status\n\tlast = log top.sh\n", vec![]),
        ("[filter \"x\"]\n\tclean = sh tools/none.sh\n", vec![]),
    ] {
        write(&scope.join(".git/config"), config);
        assert_eq!(found(scope, &Host::default()), expected, "{config}");
    }
}

#[test]
fn a_repository_of_the_scope_that_others_push_to_keeps_its_hooks() {
    let directory = tempfile::tempdir().unwrap();
    let scope = directory.path();
    for (address, git) in [
        ("./n.git", Some("n.git")),
        ("file://$SCOPE/n.git", Some("n.git")),
        ("with", Some("with/.git")),
        (".", None),
        ("https://host/n.git", None),
        ("host:n.git", None),
        ("/elsewhere/n.git", None),
    ] {
        let address = address.replace("$SCOPE", &scope.display().to_string());
        write(
            &scope.join(".git/config"),
            &format!("[remote \"origin\"]\n\turl = {address}\n"),
        );
        fs::create_dir_all(scope.join("with/.git")).unwrap();
        let expected = git.map(|git| format!("{git}/hooks"));
        let hooks = found(scope, &Host::default());
        let hooks = hooks.into_iter().find(|path| path.ends_with("/hooks"));
        assert_eq!(hooks, expected, "{address}");
    }
}

#[test]
fn a_git_file_is_followed() {
    let directory = tempfile::tempdir().unwrap();
    let scope = directory.path().join("scope");
    write(&scope.join(".git"), "gitdir: ./.bare\n");
    write(&scope.join(".bare/config"), "[core]\n\thooksPath = .githooks\n");
    let in_scope = found(&scope, &Host::default());
    for path in [".bare/hooks", ".bare/config", ".bare/info", ".githooks"] {
        assert!(in_scope.iter().any(|found| found == path), "{path}: {in_scope:?}");
    }

    // To a working tree's, and from there to the repository's.
    let own = directory.path().join("repo/worktrees/scope");
    write(&scope.join(".git"), "gitdir: ../repo/worktrees/scope\n");
    write(&own.join("commondir"), "../..\n");
    write(
        &directory.path().join("repo/config"),
        "[core]\n\thooksPath = .common\n",
    );
    assert_eq!(found(&scope, &Host::default()), [".common"]);
}

#[test]
fn a_repository_without_a_tree_keeps_its_configuration() {
    let directory = tempfile::tempdir().unwrap();
    let scope = directory.path();
    for name in ["objects", "refs"] {
        fs::create_dir(scope.join(name)).unwrap();
    }
    fs::write(scope.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    let mut expected = OF_A_REPOSITORY;
    expected.sort();
    assert_eq!(found(scope, &Host::default()), expected);
}
