//! Files at the top of the scope that open it in an editor, with tasks in them. They have any name, so none of them can be
//! watched before it is there.

use std::{collections::BTreeSet, ffi::OsString, path::Path};

use super::{
    picture::{Root, is_settled},
    place::{self, Stamp},
};
use crate::sandbox::directory;

/// What such a file's name ends in.
const ENDING: &str = "code-workspace";

#[derive(Debug, Default)]
pub(super) struct Workspaces {
    /// Of the scope, if an equal one means that the same names are in it.
    settled: Option<Stamp>,
    pub(super) names: BTreeSet<OsString>,
}

impl Workspaces {
    /// Looks for them. `earlier` saves listing what cannot have changed.
    pub(super) fn take(root: &Root, earlier: &Self) -> Self {
        let stamp = place::stamp_of(&root.directory).ok();
        if stamp.is_some() && stamp == earlier.settled {
            return Self {
                settled: stamp,
                names: earlier.names.clone(),
            };
        }
        let is_telling = |stamp: &Stamp| root.telling == Some(stamp.inode.device) && is_settled(stamp);
        let is_workspace =
            |name: &OsString| Path::new(name).extension().is_some_and(|ending| ending == ENDING);
        let names = directory::names(&*root.directory).unwrap_or_default();
        Self {
            settled: stamp.filter(is_telling),
            names: names.into_iter().filter(is_workspace).collect(),
        }
    }
}
