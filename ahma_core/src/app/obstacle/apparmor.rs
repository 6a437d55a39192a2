//! The AppArmor profile that lets this program alone make user namespaces.

use std::path::Path;

/// For the program where packages install it; the same text as in `packaging/apparmor`.
const PACKAGED: &str = include_str!("apparmor_profile");

const PACKAGED_PROGRAM: &str = "/usr/bin/ahma_mcp";

/// The profile for the program that is running, wherever it was installed.
pub(in crate::app) fn profile_for_this_program() -> std::io::Result<String> {
    Ok(profile(&std::env::current_exe()?.canonicalize()?))
}

fn profile(program: &Path) -> String {
    PACKAGED.replace(PACKAGED_PROGRAM, &quoted(&program.to_string_lossy()))
}

/// Takes the special meaning from characters that would make a pattern of a path.
fn quoted(path: &str) -> String {
    let mut quoted = String::new();
    for character in path.chars() {
        if "\\\"*?[]{}^@".contains(character) {
            quoted.push('\\');
        }
        quoted.push(character);
    }
    quoted
}

#[cfg(test)]
#[path = "apparmor_tests.rs"]
mod tests;
