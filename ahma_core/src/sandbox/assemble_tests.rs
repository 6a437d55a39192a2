use std::{fs, os::unix::fs::symlink, path::Path};

use super::{Host, SandboxSettings, assemble};
use crate::sandbox::{Access, Network, Policy, Toolchains};

fn settings(scope: &Path) -> SandboxSettings {
    SandboxSettings {
        scope: scope.to_owned(),
        private: "/nowhere".into(),
        network: Network::Open,
        allow_read: Vec::new(),
        allow_write: Vec::new(),
        allow_tmp: false,
        toolchains: Toolchains::Auto,
        trust_workspace_config: false,
        tools_dir: ".ahma/tools".into(),
        also_protected: Vec::new(),
    }
}

fn access(policy: &Policy, path: &Path) -> Option<Access> {
    policy
        .grants
        .iter()
        .filter(|grant| path.starts_with(&grant.path))
        .map(|grant| grant.access)
        .max()
}

#[test]
fn the_home_is_closed_but_for_what_toolchains_need() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path().join("home");
    for path in ["bin", ".cargo/bin", ".cargo/registry", ".ssh", "project"] {
        fs::create_dir_all(home.join(path)).unwrap();
    }
    for path in [
        ".cargo/credentials.toml",
        ".cargo/config.toml",
        ".gitconfig",
        ".git-credentials",
        ".npmrc",
    ] {
        fs::write(home.join(path), "").unwrap();
    }
    let host = Host {
        home: Some(home.clone()),
        path: format!("{0}/bin:{0}:.:/usr/bin", home.display()),
        variables: Default::default(),
    };
    let policy = assemble(&settings(&home.join("project")), &host).unwrap();
    for (path, expected) in [
        ("bin/tool", Some(Access::ReadExecute)),
        (".cargo/bin/cargo", Some(Access::ReadExecute)),
        (".cargo/config.toml", Some(Access::Read)),
        (".gitconfig", Some(Access::Read)),
        (".cargo/credentials.toml", None),
        (".git-credentials", None),
        (".npmrc", None),
        (".ssh/id_ed25519", None),
    ] {
        assert_eq!(access(&policy, &home.join(path)), expected, "{path}");
    }
    assert_eq!(policy.overlays, [home.join(".cargo/registry")]);
    assert_eq!(access(&policy, Path::new("/etc/shadow")), None);
    assert_eq!(access(&policy, Path::new("/etc/passwd")), Some(Access::Read));
}

#[test]
fn a_variable_cannot_open_the_home() {
    let home = tempfile::tempdir().unwrap();
    let scope = tempfile::tempdir().unwrap();
    fs::write(home.path().join("secret"), "").unwrap();
    let variables = [
        ("PYENV_ROOT", home.path().display().to_string()),
        ("RUSTUP_HOME", "/".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value));
    let host = Host {
        home: Some(home.path().to_owned()),
        path: "/".into(),
        variables: variables.into(),
    };
    let policy = assemble(&settings(scope.path()), &host).unwrap();
    assert_eq!(access(&policy, &home.path().join("secret")), None);
}

#[test]
fn a_planted_worktree_link_opens_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (scope, repository) = (directory.path().join("scope"), directory.path().join("repo/.git"));
    let own = repository.join("worktrees/scope");
    fs::create_dir_all(&scope).unwrap();
    fs::create_dir_all(&own).unwrap();
    for part in ["objects", "refs", "hooks"] {
        fs::create_dir(repository.join(part)).unwrap();
    }
    fs::write(scope.join(".git"), format!("gitdir: {}\n", own.display())).unwrap();
    let opened = |policy: &Policy| access(policy, &repository.join("objects"));

    let planted = assemble(&settings(&scope), &Host::default()).unwrap();
    assert_eq!(opened(&planted), None);
    fs::write(own.join("gitdir"), format!("{}\n", scope.join(".git").display())).unwrap();
    let linked = assemble(&settings(&scope), &Host::default()).unwrap();
    assert_eq!(opened(&linked), Some(Access::Write));
    assert_eq!(access(&linked, &repository.join("hooks")), Some(Access::Read));

    // As git writes it with `worktree.useRelativePaths`.
    fs::write(scope.join(".git"), "gitdir: ../repo/.git/worktrees/scope\n").unwrap();
    fs::write(own.join("gitdir"), "../../../../scope/.git\n").unwrap();
    let relative = assemble(&settings(&scope), &Host::default()).unwrap();
    assert_eq!(opened(&relative), Some(Access::Write));
    fs::write(own.join("gitdir"), "../../../../another/.git\n").unwrap();
    let planted = assemble(&settings(&scope), &Host::default()).unwrap();
    assert_eq!(opened(&planted), None);
}

#[test]
fn the_scope_is_the_real_directory() {
    let directory = tempfile::tempdir().unwrap();
    let real = directory.path().join("real").join("scope");
    fs::create_dir_all(&real).unwrap();
    symlink(&real, directory.path().join("link")).unwrap();
    let policy = assemble(&settings(&directory.path().join("link")), &Host::default()).unwrap();
    assert_eq!(policy.scope, real.canonicalize().unwrap());
    let missing = assemble(&settings(&directory.path().join("missing")), &Host::default()).unwrap_err();
    assert!(missing.to_string().contains("missing"));
}

#[test]
fn what_links_in_protected_directories_lead_to_is_protected() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    let scope = root.join("scope");
    for path in [
        ".git/hooks",
        ".ahma/tools",
        ".claude/skills",
        ".claude/trees/a",
        "conf",
        "skills/one",
        "modules",
    ] {
        fs::create_dir_all(scope.join(path)).unwrap();
    }
    for path in ["conf/hook.sh", "conf/tool.json", "conf/other", "conf/outer.json"] {
        fs::write(scope.join(path), "").unwrap();
    }
    let outside = root.join("tools");
    fs::create_dir(&outside).unwrap();
    for (target, link) in [
        ("../../conf/current", ".git/hooks/pre-commit"),
        ("hook.sh", "conf/current"),
        ("../../conf/tool.json", ".ahma/tools/tool.json"),
        ("../../skills/one", ".claude/skills/one"),
        ("../../new/hook.sh", ".git/hooks/post-checkout"),
        ("../../../outside", ".git/hooks/post-merge"),
        ("../../../modules", ".claude/trees/a/modules"),
        ("../scope/conf/outer.json", "../tools/outer.json"),
        ("..", ".claude/all"),
    ] {
        symlink(target, scope.join(link)).unwrap();
    }
    let settings = SandboxSettings {
        tools_dir: outside,
        ..settings(&scope)
    };
    let policy = assemble(&settings, &Host::default()).unwrap();
    for (path, expected) in [
        ("conf/hook.sh", true),
        ("conf/current", true),
        ("conf/tool.json", true),
        ("skills/one", true),
        // A command could make it.
        ("new/hook.sh", true),
        ("conf/outer.json", true),
        ("conf/other", false),
        ("conf", false),
        ("skills", false),
        // A working tree in there is no setting.
        ("modules", false),
        ("", false),
    ] {
        let is_protected = policy.protected.contains(&scope.join(path));
        assert_eq!(is_protected, expected, "{path}: {:?}", policy.protected);
    }
    assert!(policy.protected.iter().all(|path| path.starts_with(&scope)));
}

#[test]
fn configuration_of_git_that_is_a_link_into_the_scope_is_protected() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path().canonicalize().unwrap();
    let scope = home.join("dotfiles");
    fs::create_dir(&scope).unwrap();
    fs::write(scope.join("gitconfig"), "").unwrap();
    symlink("dotfiles/gitconfig", home.join(".gitconfig")).unwrap();
    let host = Host {
        home: Some(home),
        ..Host::default()
    };
    let policy = assemble(&settings(&scope), &host).unwrap();
    assert!(policy.protected.contains(&scope.join("gitconfig")));
}

#[test]
fn what_a_repository_around_the_scope_acts_on_is_protected() {
    let directory = tempfile::tempdir().unwrap();
    let top = directory.path().canonicalize().unwrap();
    let (git, scope) = (top.join(".git"), top.join("app"));
    for directory in [
        &git.join("hooks"),
        &scope.join("scripts"),
        &scope.join("githooks"),
    ] {
        fs::create_dir_all(directory).unwrap();
    }
    fs::write(git.join("config"), "[core]\n\thooksPath = app/githooks\n").unwrap();
    fs::write(scope.join("scripts/hook"), "").unwrap();
    symlink("../../app/scripts/hook", git.join("hooks/pre-commit")).unwrap();
    let policy = assemble(&settings(&scope), &Host::default()).unwrap();
    for name in ["githooks", "scripts/hook"] {
        assert!(policy.protected.contains(&scope.join(name)), "{name}");
    }
    assert!(policy.protected.iter().all(|path| path.starts_with(&scope)));
}
