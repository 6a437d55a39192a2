//! Places where people keep keys and tokens, and what would open them.

use std::path::{Path, PathBuf};

use super::Policy;

/// Places below the home directory that hold credentials.
pub(super) const SENSITIVE: &[&str] = &[
    ".aws",
    ".azure",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config/gcloud",
    ".config/gh",
    ".docker/config.json",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".ssh",
    "Library/Keychains",
];

/// A sensitive place that commands could read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exposed {
    pub place: PathBuf,
    /// What the policy opens it by.
    pub through: PathBuf,
    /// Why that is open, as [`super::Grant::reason`] says it.
    pub reason: String,
}

/// The first place that exists and that the policy opens, wholly or in part.
pub fn exposed(policy: &Policy, home: &Path) -> Option<Exposed> {
    let scope = std::iter::once((&policy.scope, "--sandbox-scope"));
    let grants = policy
        .grants
        .iter()
        .map(|grant| (&grant.path, grant.reason.as_str()));
    let overlays = policy.overlays.iter().map(|path| (path, "toolchain cache"));
    let opened: Vec<(PathBuf, &PathBuf, &str)> = scope
        .chain(grants)
        .chain(overlays)
        .filter_map(|(path, reason)| Some((path.canonicalize().ok()?, path, reason)))
        .collect();
    // By their real paths: a link to keys that are kept elsewhere is closed or open with those.
    let places = SENSITIVE.iter().filter_map(|name| {
        let place = home.join(name);
        Some((place.canonicalize().ok()?, place))
    });
    places.into_iter().find_map(|(real, place)| {
        let (_, through, reason) = opened
            .iter()
            .find(|(open, ..)| real.starts_with(open) || open.starts_with(&real))?;
        Some(Exposed {
            place,
            through: (*through).clone(),
            reason: (*reason).to_owned(),
        })
    })
}
