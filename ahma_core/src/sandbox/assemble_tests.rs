use std::{fs, os::unix::fs::symlink, path::Path};

use super::{Host, SandboxSettings, assemble};
use crate::sandbox::{Access, Network, Platform, Policy, Toolchains};

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
        platform: Platform::Linux,
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
        platform: Platform::Linux,
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
fn what_a_protected_link_leads_to_is_protected() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    let scope = root.join("scope");
    for path in ["conf/v1/agent", "skills", ".git/hooks"] {
        fs::create_dir_all(scope.join(path)).unwrap();
    }
    fs::write(scope.join("conf/v1/envrc"), "").unwrap();
    for (target, link) in [
        ("v1", "conf/current"),
        ("conf/current/envrc", ".envrc"),
        ("conf/current/agent", ".claude"),
        ("../../outside", ".mcp.json"),
        ("../../skills", ".git/hooks/pre-commit"),
    ] {
        symlink(target, scope.join(link)).unwrap();
    }
    let policy = assemble(&settings(&scope), &Host::default()).unwrap();
    for (path, expected) in [
        (".envrc", true),
        ("conf/current", true),
        ("conf/v1/envrc", true),
        ("conf/v1/agent", true),
        ("conf", false),
        ("conf/v1", false),
        ("skills", false),
        ("", false),
    ] {
        let is_protected = policy.protected.contains(&scope.join(path));
        assert_eq!(is_protected, expected, "{path}: {:?}", policy.protected);
    }
    assert!(policy.protected.iter().all(|path| path.starts_with(&scope)));
}

#[test]
fn a_scope_does_not_become_a_repository_and_a_bare_one_keeps_its_configuration() {
    let directory = tempfile::tempdir().unwrap();
    let scope = directory.path().canonicalize().unwrap();
    let protects = || {
        let policy = assemble(&settings(&scope), &Host::default()).unwrap();
        let mut names = vec!["HEAD", "config", "hooks", "info/attributes"];
        names.retain(|name| policy.protected.contains(&scope.join(name)));
        names
    };
    assert_eq!(protects(), ["HEAD"]);
    fs::write(scope.join("HEAD"), "").unwrap();
    assert_eq!(protects(), [""; 0]);
    for name in ["objects", "refs"] {
        fs::create_dir(scope.join(name)).unwrap();
    }
    assert_eq!(protects(), ["config", "hooks", "info/attributes"]);
}

#[test]
fn nothing_of_linux_is_looked_for_on_macos() {
    let scope = tempfile::tempdir().unwrap();
    let host = Host {
        platform: Platform::MacOs,
        ..Host::default()
    };
    let policy = assemble(&settings(&scope.path().canonicalize().unwrap()), &host).unwrap();
    let opened: Vec<_> = policy.grants.iter().map(|grant| &grant.path).collect();
    assert!(opened.contains(&&"/usr".into()), "{opened:?}");
    let is_of_linux = |path: &&&std::path::PathBuf| path.starts_with("/etc") || path.starts_with("/sys");
    assert_eq!(opened.iter().find(is_of_linux), None, "{opened:?}");
}
