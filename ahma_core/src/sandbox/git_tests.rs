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

#[test]
fn what_configuration_names_is_found_through_what_it_includes() {
    let directory = tempfile::tempdir().unwrap();
    let scope = directory.path();
    fs::create_dir_all(scope.join(".git/worktrees/other")).unwrap();
    fs::write(
        scope.join(".git/config"),
        "[include]\n\tpath = ../.gitconfig\n[core]\n\tfsmonitor = true\n",
    )
    .unwrap();
    fs::write(
        scope.join(".gitconfig"),
        "[include]\n\tpath = .gitconfig\n[core]\n\thooksPath = tools/../.githooks\n[diff \"x\"]\n\ttextconv = bin/x -v\n",
    )
    .unwrap();
    let mut found = acted_on(scope, None);
    found.sort();
    found.dedup();
    let expected = [
        ".git/worktrees/other/commondir",
        ".git/worktrees/other/config.worktree",
        ".git/worktrees/other/gitdir",
        ".gitconfig",
        ".githooks",
        "HEAD",
        "bin/x",
    ];
    assert_eq!(found, expected.map(|path| scope.join(path)));
}

#[test]
fn a_repository_without_a_tree_keeps_its_configuration() {
    let directory = tempfile::tempdir().unwrap();
    let scope = directory.path();
    for name in ["objects", "refs"] {
        fs::create_dir(scope.join(name)).unwrap();
    }
    fs::write(scope.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    assert_eq!(acted_on(scope, None), BARE.map(|name| scope.join(name)));
}
