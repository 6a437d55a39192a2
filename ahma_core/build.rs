//! Notes the commit that the program is built from, for `--version`, and lists the packs of tool files that come with it,
//! for `init` and `packs`: the source knows none of them by name.
//!
//! Reads the files of git instead of running it, and does without them: a tarball has none. `AHMA_COMMIT` names a
//! commit from outside, for builds whose sources come without history.

use std::{
    env,
    error::Error,
    fs,
    path::{Path, PathBuf},
};

/// Digits of an abbreviated commit, as in `git log --oneline` of a large repository.
const SHORT_LENGTH: usize = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let workspace = Path::new(&env::var("CARGO_MANIFEST_DIR")?)
        .join("..")
        .canonicalize()?;
    println!("cargo::rerun-if-env-changed=AHMA_COMMIT");
    let named = env::var("AHMA_COMMIT").ok().filter(|commit| !commit.is_empty());
    let suffix = named
        .or_else(|| checked_out(&workspace))
        .map(|commit| format!(" ({})", &commit[..commit.len().min(SHORT_LENGTH)]))
        .unwrap_or_default();
    // Not `AHMA_…`: under `cargo run` the program finds it in its environment, and would take it for a misspelt flag.
    println!("cargo::rustc-env=COMMIT_SUFFIX_OF_AHMA={suffix}");
    fs::write(
        Path::new(&env::var("OUT_DIR")?).join("packs.rs"),
        packs(&workspace.join("packs"))?,
    )?;
    Ok(())
}

/// A Rust expression: pack, name and text of each tool file.
fn packs(directory: &Path) -> Result<String, Box<dyn Error>> {
    let mut expression = String::from("&[\n");
    watch(directory);
    for pack in sorted_entries(directory)?.iter().filter(|path| path.is_dir()) {
        watch(pack);
        for file in sorted_entries(pack)? {
            let (pack, name) = (name_of(pack), name_of(&file));
            expression.push_str(&format!("({pack:?}, {name:?}, include_str!({file:?})),\n"));
        }
    }
    Ok(expression + "]\n")
}

fn sorted_entries(directory: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut paths = fs::read_dir(directory)
        .map_err(|error| format!("{}: {error}", directory.display()))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>, std::io::Error>>()?;
    paths.sort();
    Ok(paths)
}

fn name_of(path: &Path) -> std::borrow::Cow<'_, str> {
    path.file_name().unwrap_or_default().to_string_lossy()
}

fn checked_out(workspace: &Path) -> Option<String> {
    let git = git_directory(workspace)?;
    // Written at every commit, checkout and reset, so nothing is rebuilt until HEAD moves.
    watch(&git.join("HEAD"));
    watch(&git.join("logs/HEAD"));
    let head = fs::read_to_string(git.join("HEAD")).ok()?;
    let Some(reference) = head.trim().strip_prefix("ref: ") else {
        return commit(&head);
    };
    // The branches of a linked work tree are kept with the main one.
    let common = fs::read_to_string(git.join("commondir"))
        .map_or_else(|_| git.clone(), |common| git.join(common.trim()));
    let loose = common.join(reference);
    watch(&loose);
    if let Ok(text) = fs::read_to_string(&loose) {
        return commit(&text);
    }
    let packed = fs::read_to_string(common.join("packed-refs")).ok()?;
    packed
        .lines()
        .filter_map(|line| line.split_once(' '))
        .find(|(_, name)| *name == reference)
        .and_then(|(text, _)| commit(text))
}

/// `.git`, or what it points to in a linked work tree.
fn git_directory(workspace: &Path) -> Option<PathBuf> {
    let git = workspace.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    let pointer = fs::read_to_string(&git).ok()?;
    Some(workspace.join(pointer.strip_prefix("gitdir: ")?.trim()))
}

/// Only what exists: cargo takes a missing file for one that changes all the time.
fn watch(path: &Path) {
    if path.exists() {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}

fn commit(text: &str) -> Option<String> {
    let text = text.trim();
    (text.len() >= 40 && text.chars().all(|c| c.is_ascii_hexdigit())).then(|| text.to_owned())
}
