//! Repositories of the user in the scope: commands work in them, and the guard leaves them where they are.

use std::{fs, path::Path};

use serde_json::json;
use test_support::{Era, Workspace};

use crate::session::options;

const COMMANDS: usize = 200;

/// Commits under a name, in a repository whose configuration has none.
const COMMIT: &str = "git -c user.name=x -c user.email=x@x commit -q --allow-empty -m";

/// A project with a nested repository that runs programs of its own, a submodule and a second worktree.
fn prepare(scope: &Path) {
    let script = format!(
        "set -e
         git init -q ../library; (cd ../library; {COMMIT} one)
         git init -q .; {COMMIT} one
         git -c protocol.file.allow=always submodule add -q $(realpath ../library) library
         {COMMIT} submodule
         git worktree add -q tree
         git init -q nested; (cd nested; {COMMIT} one; git config core.fsmonitor false; echo exit > .git/hooks/pre-push)"
    );
    let done = std::process::Command::new("sh")
        .args(["-c", &script])
        .current_dir(scope)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .expect("a shell");
    assert!(done.status.success(), "{done:?}");
}

fn commands() -> impl Iterator<Item = String> {
    let kinds = [
        format!("cd nested && {COMMIT} NUMBER"),
        "cd nested && git config core.fsmonitor NUMBER && echo NUMBER > .git/hooks/post-merge".to_owned(),
        format!("cd library && {COMMIT} NUMBER && cd .. && git add library && {COMMIT} NUMBER"),
        "git submodule status && git submodule update --force && git submodule foreach -q true".to_owned(),
        format!("cd tree && echo NUMBER > file && git add file && {COMMIT} NUMBER"),
        "git worktree add -q -b bNUMBER treeNUMBER && git worktree list && git worktree remove treeNUMBER"
            .to_owned(),
        "git checkout -q -b cNUMBER && git checkout -q - && git branch -q -D cNUMBER".to_owned(),
        "echo NUMBER > file && git add file && git status --short && git stash -q && git stash drop -q"
            .to_owned(),
        "git clone -q nested cloneNUMBER && ln -s nested linkNUMBER && mv cloneNUMBER movedNUMBER".to_owned(),
        format!("{COMMIT} NUMBER && git gc -q && git log --oneline | wc -l"),
    ];
    (0..COMMANDS).map(move |number| kinds[number % kinds.len()].replace("NUMBER", &number.to_string()))
}

#[test]
fn repositories_of_the_user_survive_many_commands() {
    for tier in ["full", "core"] {
        let workspace = Workspace::new();
        let scope = workspace.scope();
        prepare(&scope);
        let mut server = options(&workspace)
            .args(["--sandbox-tier", tier])
            .open(Era::Modern);
        for command in commands() {
            let arguments = json!({"command": command, "execution_mode": "synchronous"});
            let answer = server.tool("sandboxed_shell", arguments);
            let told = answer.to_string();
            assert_eq!(
                answer["structuredContent"]["status"], "completed",
                "{tier}: {command}: {told}"
            );
            assert!(!told.contains("Protected file"), "{tier}: {command}: {told}");
        }
        drop(server);
        let quarantine = workspace.home().join(".local/state/ahma_mcp/quarantine");
        assert!(!quarantine.exists(), "{tier}: {:?}", fs::read_dir(&quarantine));
        let each = COMMANDS / 10;
        for (directory, commits) in [
            ("nested", 1 + each),
            ("library", 1 + each),
            ("tree", 2 + each),
            (".", 2 + 2 * each),
        ] {
            let done = std::process::Command::new("git")
                .args(["-C", directory, "log", "--oneline"])
                .current_dir(&scope)
                .output()
                .expect("git");
            let log = String::from_utf8_lossy(&done.stdout);
            assert_eq!(log.lines().count(), commits, "{tier}: {directory}: {done:?}");
        }
        let config = fs::read_to_string(scope.join("nested/.git/config")).expect("readable");
        assert!(config.contains("fsmonitor = 191"), "{tier}: {config}");
    }
}
