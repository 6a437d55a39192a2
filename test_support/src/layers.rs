//! The layers of a crate, checked in its source text. Crude, but features and targets that a build leaves out do not escape it.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Rules of one crate.
#[derive(Debug)]
pub struct Layers<'a> {
    /// The directory of the crate's sources.
    pub sources: PathBuf,
    /// Top-level modules, the lowest layer first. A module uses modules of lower layers only, so there are no cycles.
    pub layers: &'a [&'a [&'a str]],
    /// Foreign crates, or parts of them, that only some modules may use.
    pub reserved: &'a [(&'a str, &'a [&'a str])],
}

impl Layers<'_> {
    /// Everything that is against the rules, a line for each.
    pub fn violations(&self) -> Vec<String> {
        let found = sources(&self.sources).into_iter().flat_map(|(path, text)| {
            let relative = path.strip_prefix(&self.sources).unwrap();
            let first = relative.iter().next().unwrap().to_string_lossy();
            let module = first.trim_end_matches(".rs").to_owned();
            let violations = self.violations_in(&module, &text);
            let shown = relative.display().to_string();
            violations.into_iter().map(move |what| format!("{shown}: {what}"))
        });
        found.collect()
    }

    /// Shows that the rules can fail: finds something against them in each text of the first list, a module and a line of
    /// it, and nothing in those of the second.
    pub fn assert_sees(&self, forbidden: &[(&str, &str)], allowed: &[(&str, &str)]) {
        for (module, text) in forbidden {
            let found = self.violations_in(module, text);
            assert!(!found.is_empty(), "{module} may, but must not: {text}");
        }
        for (module, text) in allowed {
            let found = self.violations_in(module, text);
            assert!(found.is_empty(), "{module}: {found:?} in {text}");
        }
    }

    fn violations_in(&self, module: &str, text: &str) -> Vec<String> {
        let paths = used_paths(&code_of(text));
        let layer_of = |module: &str| self.layers.iter().position(|layer| layer.contains(&module));
        let mut violations = Vec::new();
        match layer_of(module) {
            None if module == "lib" => {}
            None => violations.push(format!("`{module}` belongs to no layer")),
            Some(own) => {
                let used: BTreeSet<&str> = (paths.iter())
                    .filter_map(|path| path.strip_prefix("crate::")?.split("::").next())
                    .collect();
                // What the root re-exports would hide its layer.
                let allowed = |used: &str| used == module || layer_of(used).is_some_and(|layer| layer < own);
                let forbidden = used.into_iter().filter(|used| !allowed(used));
                violations.extend(forbidden.map(|used| format!("must not use `crate::{used}`")));
            }
        }
        let uses = |path: &str| paths.iter().any(|used| is_below(used, path));
        let foreign = self
            .reserved
            .iter()
            .filter(|(_, allowed)| !allowed.contains(&module));
        let used = foreign.filter(|(name, _)| uses(name));
        violations.extend(used.map(|(name, _)| format!("must not use `{name}`")));
        violations
    }
}

/// The Rust files below a directory except unit tests, with their text.
pub fn sources(directory: &Path) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.to_string_lossy();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if name.ends_with(".rs") && !name.ends_with("_tests.rs") {
            let text = fs::read_to_string(&path).unwrap();
            files.push((path, text));
        }
    }
    files.sort();
    files
}

/// The text without comments; strings stay, which is harmless.
fn code_of(text: &str) -> String {
    let lines = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// Every path in the code, with the braces of `use` opened: `std::{fs, io}` gives `std::fs` and `std::io`.
fn used_paths(code: &str) -> Vec<String> {
    let mut paths = Vec::new();
    let mut prefixes = vec![String::new()];
    let mut current = String::new();
    for letter in code.chars().chain(['\n']) {
        if letter.is_alphanumeric() || letter == '_' || letter == ':' {
            current.push(letter);
            continue;
        }
        let path = format!("{}{current}", prefixes.last().map_or("", String::as_str));
        match letter {
            // A brace after `::` opens a group of a `use`; any other one is a block and has no prefix.
            '{' if current.ends_with("::") => prefixes.push(path),
            '{' => prefixes.push(String::new()),
            _ => {
                if !current.is_empty() {
                    paths.push(path);
                }
                if letter == '}' {
                    prefixes.pop();
                }
            }
        }
        current.clear();
    }
    paths
}

fn is_below(used: &str, path: &str) -> bool {
    let rest = used.strip_prefix(path);
    rest.is_some_and(|rest| rest.starts_with("::") || rest.is_empty() && path.contains("::"))
}
