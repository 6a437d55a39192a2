//! The protected paths: names that programs outside the sandbox act on later.
//!
//! They are known by name. No file is read to find more of them.

use std::{
    collections::BTreeSet,
    path::{Component, Path, PathBuf},
};

use super::{SandboxSettings, resolved_path::ResolvedPath};

/// Names in the scope that programs outside the sandbox act on later.
pub(super) const PROTECTED: &[&str] = &[
    // Where the next server looks for its tools, whichever directory this one has them from.
    ".ahma/tools",
    // The directory itself only by its name: git works in it.
    ".git",
    ".git/branches",
    ".git/commondir",
    ".git/config",
    ".git/config.worktree",
    ".git/hooks",
    // Not the whole directory: git writes `refs` there when it tidies up.
    ".git/info/attributes",
    ".git/info/exclude",
    ".git/info/grafts",
    ".git/remotes",
    ".gitmodules",
    ".husky",
    ".envrc",
    ".autoenv",
    ".autoenv.zsh",
    // Those of other version control.
    ".hg/hgrc",
    ".hg/hgrc-not-shared",
    ".jj/repo/config.toml",
    ".sl/config",
    // Editors.
    ".vscode",
    ".idea",
    ".run",
    ".fleet",
    ".zed",
    ".helix",
    ".exrc",
    ".vimrc",
    ".gvimrc",
    ".lvimrc",
    ".nvimrc",
    ".nvim.lua",
    ".dir-locals.el",
    ".dir-locals-2.el",
    ".devcontainer",
    ".devcontainer.json",
    ".externalToolBuilders",
    // Agents: hooks, and servers that they start. Rules alone run nothing.
    ".agents",
    ".aider.conf.yml",
    ".amazonq",
    ".amp",
    ".claude",
    ".codex",
    ".continue",
    ".crush.json",
    "crush.json",
    ".cursor",
    ".factory",
    ".gemini",
    ".junie",
    ".kilocode",
    ".kiro",
    ".opencode",
    "opencode.json",
    "opencode.jsonc",
    ".qwen",
    ".roo",
    ".trae",
    ".windsurf",
    ".mcp.json",
    "mcp.json",
];

/// The names that make the scope itself a bare repository, and what git acts on there.
const BARE_REPOSITORY: &[&str] = &["HEAD", "objects", "refs"];
const IN_BARE_REPOSITORY: &[&str] = &["config", "hooks", "info/attributes"];

/// In the administrative directory of a linked worktree: what leads git to its repository, and its configuration.
const IN_LINKED_WORKTREE: &[&str] = &["commondir", "config.worktree", "gitdir"];

/// Paths that programs outside act on later: in the scope, and in the administrative directory of a linked worktree.
pub(super) fn protected(settings: &SandboxSettings, scope: &Path, worktree: Option<&Path>) -> Vec<PathBuf> {
    if settings.trust_workspace_config {
        return Vec::new();
    }
    let mut protected: BTreeSet<PathBuf> = PROTECTED.iter().map(|name| scope.join(name)).collect();
    protected.insert(scope.join(&settings.tools_dir));
    protected.extend(settings.also_protected.iter().map(|file| scope.join(file)));
    let in_bare: &[&str] = if BARE_REPOSITORY.iter().all(|name| scope.join(name).exists()) {
        IN_BARE_REPOSITORY
    } else if scope.join("HEAD").exists() {
        &[]
    } else {
        // With a few more files it would make the scope a repository with a configuration of its own.
        &["HEAD"]
    };
    protected.extend(in_bare.iter().map(|name| scope.join(name)));
    // Where one of them is a link, what it leads to is acted on as well, and so is every link on the way.
    let led_to: Vec<PathBuf> = protected
        .iter()
        .filter_map(|path| ResolvedPath::of(path))
        .flat_map(|resolved| resolved.links.into_iter().chain([resolved.end]))
        .collect();
    protected.extend(led_to);
    let is_plain = |path: &PathBuf| !path.components().any(|part| part == Component::ParentDir);
    protected.retain(|path| path.starts_with(scope) && path != scope && is_plain(path));
    let pointers = worktree
        .into_iter()
        .flat_map(|own| IN_LINKED_WORKTREE.iter().map(|name| own.join(name)));
    protected.extend(pointers);
    protected.into_iter().collect()
}
