//! The profile's files and ports as Landlock rules. Landlock only adds: around what is closed inside something open, the
//! entries of that directory are opened one by one.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, NetPort, PathBeneath, PathFd, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, Scope,
};
use test_support::{Profile, Subject};

use crate::{
    start::{here, there},
    view,
};

const NEWEST: ABI = ABI::V6;

/// The rights that are open.
pub(crate) struct Rules {
    files: Vec<(PathBuf, BitFlags<AccessFs>)>,
    /// `None` if ports make no difference.
    ports: Option<Vec<u16>>,
}

impl Rules {
    pub(crate) fn of(profile: &Profile) -> Self {
        let named: BTreeSet<PathBuf> = profile.named_paths().map(here).collect();
        let mut rules = Self {
            files: Vec::new(),
            ports: None,
        };
        rules.open_reads(profile, &named, Path::new("/"));
        rules.open_writes(profile, &named);
        let ports: Vec<u16> = profile.named_ports().collect();
        if !ports.is_empty() {
            rules.ports = Some(ports);
        }
        rules
    }

    fn open_reads(&mut self, profile: &Profile, named: &BTreeSet<PathBuf>, path: &Path) {
        let may_read = |path: &Path| profile.allows("file-read-data", Subject::Path(&there(path)));
        let below: Vec<&PathBuf> = named
            .iter()
            .filter(|other| *other != path && other.starts_with(path))
            .collect();
        if may_read(path) && below.iter().all(|other| may_read(other)) {
            let rights = AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::Execute;
            return self.files.push((path.to_owned(), rights));
        }
        let mut entries: BTreeSet<PathBuf> = below
            .iter()
            .filter_map(|other| Some(path.join(other.strip_prefix(path).ok()?.components().next()?)))
            .collect();
        if may_read(path) {
            let listed = fs::read_dir(path).into_iter().flatten().flatten();
            entries.extend(listed.map(|entry| entry.path()));
        }
        for entry in entries {
            self.open_reads(profile, named, &entry);
        }
    }

    fn open_writes(&mut self, profile: &Profile, named: &BTreeSet<PathBuf>) {
        let root = PathBuf::from("/");
        for path in named
            .iter()
            .chain([&root])
            .filter(|path| view::may_write(profile, path))
        {
            let never = AccessFs::MakeChar | AccessFs::MakeBlock;
            self.files
                .push((path.clone(), AccessFs::from_write(NEWEST) & !never));
        }
    }

    /// Confines the calling process.
    pub(crate) fn enforce(&self) -> io::Result<()> {
        let mut ruleset = Ruleset::default()
            .handle_access(AccessFs::from_all(NEWEST))
            .and_then(|ruleset| ruleset.scope(Scope::from_all(NEWEST)))
            .map_err(io::Error::other)?;
        if self.ports.is_some() {
            ruleset = ruleset
                .handle_access(AccessNet::ConnectTcp)
                .map_err(io::Error::other)?;
        }
        let mut ruleset = ruleset.create().map_err(io::Error::other)?;
        for (path, rights) in &self.files {
            // One that is not there, leads to a pipe, or cannot be reached by this user opens nothing.
            let Some(opened) = fs::canonicalize(path)
                .ok()
                .and_then(|real| PathFd::new(real).ok())
            else {
                continue;
            };
            let rights = if path.is_dir() {
                *rights
            } else {
                *rights & AccessFs::from_file(NEWEST)
            };
            ruleset = ruleset
                .add_rule(PathBeneath::new(opened, rights))
                .map_err(io::Error::other)?;
        }
        for port in self.ports.iter().flatten() {
            ruleset = ruleset
                .add_rule(NetPort::new(*port, AccessNet::ConnectTcp))
                .map_err(io::Error::other)?;
        }
        ruleset.restrict_self().map_err(io::Error::other).map(drop)
    }
}
