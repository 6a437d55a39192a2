//! The environment of commands: an allow-list, quiet defaults, private caches. Secrets in the server's environment never
//! reach a command unless the user names the variable.

use std::{collections::BTreeMap, path::Path};

use super::Platform;

/// Variables that pass.
const ALLOWED: &[&str] = &[
    "CARGO_HOME",
    "GOPATH",
    "GOROOT",
    "HOME",
    "JAVA_HOME",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "NVM_DIR",
    "PATH",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "SHELL",
    "TZ",
    "USER",
    "VIRTUAL_ENV",
];

/// Certificates of a network that inspects TLS; without them nothing there can be downloaded. Paths, never secrets.
pub(super) const CERTIFICATES: &[&str] = &[
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NIX_SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
];

/// Proxies pass unless their address holds a password.
const PROXIES: &[&str] = &[
    "ALL_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// Defaults for commands without a terminal: no questions, no pager, no colours, and output that is seen when it is
/// printed; Python would keep some kilobytes back. `CI` is not among them: programs print and write other things under it.
const DEFAULTS: &[(&str, &str)] = &[
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("PAGER", "cat"),
    ("PYTHONUNBUFFERED", "1"),
    ("TERM", "dumb"),
];

/// Caches that tools would look for in the home directory, which is closed.
const PRIVATE_CACHES: &[(&str, &str)] = &[
    ("GOCACHE", "go-build"),
    ("GRADLE_USER_HOME", "gradle"),
    ("PIP_CACHE_DIR", "pip"),
    ("XDG_CACHE_HOME", "xdg"),
    ("npm_config_cache", "npm"),
];

/// Files that macOS and its tools would put where nothing can be written: the answers of `xcrun`, which stands behind `git` and
/// `cc` there, compiled modules, and the here-documents of `zsh`.
const PRIVATE_FILES_OF_MACOS: &[(&str, &str)] = &[
    ("CLANG_MODULE_CACHE_PATH", "clang-modules"),
    ("TMPPREFIX", "zsh"),
    ("xcrun_db", "xcrun_db"),
];

/// Picks the commands' environment out of the server's. `temp` is where commands see their temporary directory.
pub fn environment(
    server: impl IntoIterator<Item = (String, String)>,
    pass: &[String],
    temp: &Path,
    platform: Platform,
) -> BTreeMap<String, String> {
    let mut chosen: BTreeMap<String, String> = DEFAULTS
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    for (name, directory) in PRIVATE_CACHES {
        let path = temp.join("cache").join(directory);
        chosen.insert((*name).to_owned(), path.to_string_lossy().into_owned());
    }
    if platform == Platform::MacOs {
        for (name, file) in PRIVATE_FILES_OF_MACOS {
            let path = temp.join(file).to_string_lossy().into_owned();
            chosen.insert((*name).to_owned(), path);
        }
        if let Some(below) = below_user_temp(temp) {
            chosen.insert("DIRHELPER_USER_DIR_SUFFIX".to_owned(), below);
        }
    }
    for name in ["TMPDIR", "TMP", "TEMP"] {
        chosen.insert(name.to_owned(), temp.to_string_lossy().into_owned());
    }
    for (name, value) in server {
        if passes(&name, &value) || pass.contains(&name) {
            chosen.insert(name, value);
        }
    }
    chosen
}

/// The way from the user's temporary directory on macOS, such as `/private/var/folders/ab/cd/T`, to this one. Programs that
/// ask the system for that directory, as `mktemp` does, are told to go it.
fn below_user_temp(temp: &Path) -> Option<String> {
    let is_of_users = |place: &&Path| place.starts_with("/private/var/folders") && place.ends_with("T");
    let of_user = temp.ancestors().find(is_of_users)?;
    Some(temp.strip_prefix(of_user).ok()?.to_str()?.to_owned())
}

fn passes(name: &str, value: &str) -> bool {
    ALLOWED.contains(&name)
        || CERTIFICATES.contains(&name)
        || name.starts_with("LC_")
        || (PROXIES.contains(&name) && !value.contains('@'))
}

#[cfg(test)]
#[path = "environment_tests.rs"]
mod tests;
