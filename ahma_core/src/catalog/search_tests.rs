use std::{fs, sync::Arc};

use test_support::pack_files;

use super::*;
use crate::{
    catalog::{Catalog, CatalogSettings, Tool},
    mtdf::{ToolSource, check_set},
};

/// Questions as a model would put them, with the tools that answer them.
const QUESTIONS: [(&str, &[&str]); 50] = [
    ("undo the last commit", &["git_revert", "git_reset"]),
    ("who changed this line", &["git_blame"]),
    ("put my changes aside for now", &["git_stash_push"]),
    ("get stashed changes back", &["git_stash_pop", "git_stash_apply"]),
    (
        "discard local changes of a file",
        &["git_restore", "git_checkout"],
    ),
    ("apply a commit from another branch", &["git_cherry-pick"]),
    (
        "create a new branch",
        &["git_branch", "git_switch", "git_checkout"],
    ),
    ("delete untracked files", &["git_clean"]),
    ("upload commits to the remote", &["git_push"]),
    ("download new commits without merging", &["git_fetch"]),
    ("find a lost commit", &["git_reflog"]),
    ("tag a version", &["git_tag"]),
    ("rename a tracked file", &["git_mv"]),
    ("move commits on top of main", &["git_rebase"]),
    ("list remotes", &["git_remote_default", "git_remote_show"]),
    ("make a second working tree", &["git_worktree_add"]),
    ("search the tracked files for a pattern", &["git_grep"]),
    ("commits per author", &["git_shortlog"]),
    ("open a pull request", &["gh_pr_create"]),
    (
        "see why CI failed",
        &["gh_run_view", "gh_pr_checks", "gh_run_list"],
    ),
    ("comment on an issue", &["gh_issue_comment"]),
    ("restart a failed workflow run", &["gh_run_rerun"]),
    ("merge a pull request", &["gh_pr_merge"]),
    ("publish a release", &["gh_release_create"]),
    ("search code on GitHub", &["gh_search_code"]),
    ("start a workflow by hand", &["gh_workflow_run"]),
    ("add a dependency to Cargo.toml", &["cargo_add"]),
    ("remove a crate dependency", &["cargo_remove"]),
    ("update Cargo.lock", &["cargo_update"]),
    ("show the dependency tree", &["cargo_tree"]),
    ("known vulnerabilities in crates", &["cargo_audit"]),
    ("run the benchmarks", &["cargo_bench"]),
    ("build the documentation", &["cargo_doc"]),
    ("delete build output", &["cargo_clean"]),
    ("create a new Rust package", &["cargo_new", "cargo_init"]),
    ("fix compiler warnings", &["cargo_fix", "cargo_clippy"]),
    ("publish the crate", &["cargo_publish"]),
    (
        "install npm packages from the lock file",
        &["npm_ci", "npm_install"],
    ),
    ("which packages are outdated", &["npm_outdated"]),
    ("run a package.json script", &["npm_run"]),
    ("npm vulnerabilities", &["npm_audit_default", "npm_audit_fix"]),
    (
        "installed Python packages",
        &["pip_list", "pip_freeze", "pip_show"],
    ),
    ("uninstall a Python package", &["pip_uninstall"]),
    ("broken Python dependencies", &["pip_check"]),
    ("logs of a container", &["docker_logs", "docker_compose_logs"]),
    ("build a docker image", &["docker_build"]),
    (
        "stop all compose services",
        &["docker_compose_stop", "docker_compose_down"],
    ),
    (
        "free docker disk space",
        &["docker_system_prune", "docker_system_df"],
    ),
    ("open ports of a host", &["nmap", "nmap_xml"]),
    ("find security bugs in source code", &["semgrep"]),
];

fn shipped() -> Vec<Arc<Tool>> {
    let sources: Vec<ToolSource> = pack_files()
        .iter()
        .map(|path| ToolSource {
            name: path.display().to_string(),
            text: fs::read_to_string(path).unwrap(),
        })
        .collect();
    let set = check_set(&sources);
    Catalog::build(&set.tools, CatalogSettings::default())
        .tools()
        .cloned()
        .collect()
}

#[test]
fn the_right_tool_is_among_the_first_three() {
    let tools = shipped();
    let index = SearchIndex::build(tools.iter().map(|tool| tool.described()));
    let misses: Vec<String> = QUESTIONS
        .iter()
        .filter_map(|(question, right)| {
            let found = index.search(question, 3);
            let hit = found.iter().any(|name| right.contains(name));
            (!hit).then(|| format!("{question}: {found:?}, not {right:?}"))
        })
        .collect();
    assert!(
        misses.len() <= 5,
        "{} of {} missed\n{}",
        misses.len(),
        QUESTIONS.len(),
        misses.join("\n")
    );
}

#[test]
fn a_query_without_a_known_word_finds_nothing() {
    let tools = shipped();
    let index = SearchIndex::build(tools.iter().map(|tool| tool.described()));
    assert_eq!(index.search("xylophone", 5), Vec::<&str>::new());
    assert_eq!(index.search("", 5), Vec::<&str>::new());
}

#[test]
fn endings_are_taken_off() {
    for (word, expected) in [
        ("commits", "commit"),
        ("committing", "commit"),
        ("dependencies", "dependency"),
        ("changes", "chang"),
        ("change", "chang"),
        ("changed", "chang"),
        ("class", "class"),
        ("ls", "ls"),
    ] {
        assert_eq!(stem(word), expected, "{word}");
    }
}
