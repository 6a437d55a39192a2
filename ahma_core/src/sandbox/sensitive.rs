//! Paths that usually hold keys and tokens, and the grants that would open them.

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

/// A place that commands could reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exposed {
    pub place: PathBuf,
    /// The open path that contains it or lies in it.
    pub through: PathBuf,
    /// The reason why that is open, as in [`super::Grant::reason`].
    pub reason: String,
}

/// The sensitive places that exist.
pub fn sensitive_places(home: &Path) -> impl Iterator<Item = PathBuf> {
    SENSITIVE
        .iter()
        .map(|name| home.join(name))
        .filter(|place| place.exists())
}

/// The path without links, as far as it exists.
pub fn real_path(path: &Path) -> PathBuf {
    let found = path
        .ancestors()
        .find_map(|above| Some((above.canonicalize().ok()?, path.strip_prefix(above).ok()?)));
    found.map_or_else(|| path.to_owned(), |(above, rest)| above.join(rest))
}

/// The first of the places that the policy opens, wholly or in part.
pub fn exposed(policy: &Policy, places: impl IntoIterator<Item = PathBuf>) -> Option<Exposed> {
    let scope = std::iter::once((policy.scope.clone(), &policy.scope, "--sandbox-scope"));
    let grants = policy
        .grants
        .iter()
        .map(|grant| (grant.real.clone(), &grant.path, grant.reason.as_str()));
    let overlays = policy
        .overlays
        .iter()
        .filter_map(|path| Some((path.canonicalize().ok()?, path, "toolchain cache")));
    let opened: Vec<(PathBuf, &PathBuf, &str)> = scope.chain(grants).chain(overlays).collect();
    places.into_iter().find_map(|place| {
        // A link to keys that are kept elsewhere is closed or open with those.
        let real = real_path(&place);
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
