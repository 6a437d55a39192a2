//! Paths that usually hold keys and tokens, and the grants that would open them.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use super::Policy;

/// Places below the home directory that hold credentials.
const SENSITIVE: &[&str] = &[
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

/// True for a sensitive place of this home and all below it, judged by its text alone.
pub(super) fn holds_keys(path: &Path, home: &Path) -> bool {
    SENSITIVE.iter().any(|name| path.starts_with(home.join(name)))
}

/// All sensitive places, also those that do not exist yet, without links on the way. One that is a link itself is there
/// twice: as that, and as what it leads to.
pub fn places_of_keys(home: &Path) -> Vec<PathBuf> {
    let home = real_path(home);
    let places = SENSITIVE.iter().map(|name| home.join(name));
    places
        .flat_map(|place| [real_path(&place), place])
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect()
}

/// The path without links, as far as it exists.
pub fn real_path(path: &Path) -> PathBuf {
    let found = path
        .ancestors()
        .find_map(|above| Some((above.canonicalize().ok()?, path.strip_prefix(above).ok()?)));
    match found {
        // A join with nothing would add a slash.
        Some((real, rest)) if rest.as_os_str().is_empty() => real,
        Some((above, rest)) => above.join(rest),
        None => path.to_owned(),
    }
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

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn places_behind_links_are_known_by_both_names() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let (home, kept) = (root.join("home"), root.join("kept"));
        fs::create_dir(&home).unwrap();
        fs::create_dir(&kept).unwrap();
        symlink(&home, root.join("link")).unwrap();
        symlink(&kept, home.join(".ssh")).unwrap();
        let places = places_of_keys(&root.join("link"));
        for place in [home.join(".ssh"), kept, home.join(".aws")] {
            assert!(places.contains(&place), "{} in {places:?}", place.display());
        }
        assert_eq!(places.len(), SENSITIVE.len() + 1, "{places:?}");
        assert_eq!(real_path(&root.join("link/")).as_os_str(), home.as_os_str());
    }
}
