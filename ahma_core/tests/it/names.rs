//! One name, one thing: no two types of a crate share a name, private ones included.
//!
//! It reads the source text. Types inside of functions and of test modules are indented, and may be called as they like. A file
//! mounted with `#[path]` is the version of another one for builds without a feature or on another system, so it repeats
//! that file's names on purpose.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use test_support::sources;

#[test]
fn no_two_types_of_a_crate_share_a_name() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut shared = BTreeMap::new();
    for entry in fs::read_dir(workspace).unwrap() {
        let directory = entry.unwrap().path();
        if directory.join("src").is_dir() {
            let name = directory.file_name().unwrap().to_string_lossy().into_owned();
            for (type_name, files) in shared_names(&sources(&directory.join("src"))) {
                shared.insert((name.clone(), type_name), files);
            }
        }
    }
    assert!(shared.is_empty(), "types of one name: {shared:#?}");
}

#[test]
fn a_shared_name_is_noticed() {
    let file = |name: &str, text: &str| (PathBuf::from(name), text.to_owned());
    let shared = shared_names(&[
        file(
            "a.rs",
            "pub struct Place;\nstruct Own;\npub(crate) enum Verdict {\nfn f() {\n    struct Local;\n",
        ),
        file(
            "b.rs",
            "pub(super) struct Place<T> {\nunsafe trait Own {}\n// pub enum Verdict\nstruct Local;\n#[cfg(test)]\nmod tests {\n    enum Verdict {}\n",
        ),
        file(
            "mod.rs",
            "#[cfg(not(unix))]\n#[path = \"elsewhere.rs\"]\nmod a;\n",
        ),
        file("elsewhere.rs", "pub(crate) enum Verdict {"),
    ]);
    assert_eq!(shared.keys().collect::<Vec<_>>(), ["Own", "Place"]);
}

/// Names of types that more than one of the files defines, with those files.
fn shared_names(files: &[(PathBuf, String)]) -> BTreeMap<String, Vec<PathBuf>> {
    let alternatives: BTreeSet<&str> = files
        .iter()
        .flat_map(|(_, text)| text.lines())
        .filter_map(|line| line.trim().strip_prefix("#[path = \"")?.strip_suffix("\"]"))
        .collect();
    let mut found: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for (path, text) in files {
        let file_name = path.file_name().unwrap().to_string_lossy();
        if !alternatives.contains(file_name.as_ref()) {
            for name in text.lines().filter_map(defined_type) {
                found.entry(name.to_owned()).or_default().push(path.clone());
            }
        }
    }
    found.retain(|_, paths| paths.len() > 1);
    found
}

/// The type that a line at the top level defines.
fn defined_type(line: &str) -> Option<&str> {
    let visible = line.strip_prefix("pub").map(|rest| match rest.strip_prefix('(') {
        Some(restricted) => restricted.split_once(')').map_or("", |(_, rest)| rest),
        None => rest,
    });
    let item = visible.map_or(line, |rest| rest.strip_prefix(' ').unwrap_or_default());
    let item = item.strip_prefix("unsafe ").unwrap_or(item);
    let (kind, rest) = item.split_once(' ')?;
    let name = rest
        .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .next()?;
    matches!(kind, "struct" | "enum" | "trait" | "type" | "union").then_some(name)
}
