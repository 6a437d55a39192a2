//! The good picture on disk, for other servers of this user that are at work in the same scope.
//!
//! Each server has its own tripwire. One that took its picture while another's command was at work would take what that
//! command planted for good, and put it back after the other had removed it. So a picture is taken only by who is alone;
//! whoever comes meanwhile uses the same one. Being at work is holding a lock, which ends with the process.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    os::{
        fd::OwnedFd,
        unix::{
            ffi::{OsStrExt, OsStringExt},
            fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
        },
    },
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rustix::fs::{FileType, FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::{
    Depth,
    picture::{Node, Picture},
    place::{Inode, Place, Stamp},
};

/// The record of one directory.
#[derive(Debug)]
pub(super) struct Record {
    lock: File,
    file: PathBuf,
    written: Mutex<Option<Written>>,
}

/// What is in the file, by us.
#[derive(Debug)]
struct Written {
    picture: Picture,
    inode: u64,
}

/// Who is at work in the directory besides this server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Company {
    Nobody,
    Others,
}

impl Record {
    /// The record of the directory `root`, in a directory that no command can reach.
    pub(super) fn open(records: &Path, root: &OwnedFd) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(records)?;
        let found = rustix::fs::fstat(root)?;
        let name = format!("{:x}-{:x}", found.st_dev, found.st_ino);
        Ok(Self {
            lock: private(&records.join(format!("{name}.lock")))?,
            file: records.join(format!("{name}.json")),
            written: Mutex::default(),
        })
    }

    /// Begins to be at work, and says who else is. Alone, nobody else begins before [`Self::share`].
    pub(super) fn begin(&self) -> Company {
        self.begin_at_once().unwrap_or_else(|| {
            self.share();
            Company::Others
        })
    }

    /// The same, unless another server is just looking.
    pub(super) fn begin_at_once(&self) -> Option<Company> {
        if flock(&self.lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            return Some(Company::Nobody);
        }
        let shared = flock(&self.lock, FlockOperation::NonBlockingLockShared);
        shared.is_ok().then_some(Company::Others)
    }

    /// Lets others begin, too.
    pub(super) fn share(&self) {
        // Who holds it alone does so for as long as it takes to look at a few files.
        flock(&self.lock, FlockOperation::LockShared).ok();
    }

    pub(super) fn end(&self) {
        flock(&self.lock, FlockOperation::Unlock).ok();
    }

    /// Leaves the picture for others, if it is not there already.
    pub(super) fn write(&self, watched: &[(PathBuf, Depth)], picture: &Picture) -> io::Result<()> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let inode = fs::metadata(&self.file).map(|found| found.ino()).ok();
        if written
            .as_ref()
            .is_some_and(|written| Some(written.inode) == inode && is_the_same(&written.picture, picture))
        {
            return Ok(());
        }
        let kept = Kept::of(watched, picture);
        // A whole one or none: who reads it may not be alone.
        let new = self.file.with_extension("new");
        let mut file = private(&new)?;
        file.set_len(0)?;
        file.write_all(&serde_json::to_vec(&kept)?)?;
        let inode = file.metadata()?.ino();
        fs::rename(&new, &self.file)?;
        *written = Some(Written {
            picture: picture.clone(),
            inode,
        });
        Ok(())
    }

    /// What others left.
    pub(super) fn read(&self, root: &Arc<OwnedFd>) -> Option<Theirs> {
        let kept: Kept = serde_json::from_slice(&fs::read(&self.file).ok()?).ok()?;
        let watched = kept
            .watched
            .iter()
            .map(|(path, depth)| Some((PathBuf::from(decode(path)?), *depth)))
            .collect::<Option<_>>()?;
        Some(Theirs {
            watched,
            picture: kept.picture(root)?,
        })
    }
}

/// What another server watches, and what it saw there before anybody began.
#[derive(Debug)]
pub(super) struct Theirs {
    watched: BTreeSet<(PathBuf, u8)>,
    picture: Picture,
}

impl Theirs {
    /// Their picture of what both watch, and ours of the rest. What one server began to watch only after another had
    /// started must not make it believe in what a command has changed elsewhere since.
    pub(super) fn with(self, ours: Picture, watched: &[(PathBuf, Depth)]) -> Picture {
        let Self {
            watched: theirs,
            picture,
        } = self;
        let both: BTreeSet<&Path> = watched
            .iter()
            .filter(|(path, depth)| theirs.contains(&(path.clone(), *depth as u8)))
            .map(|(path, _)| path.as_path())
            .collect();
        let own: BTreeSet<&Path> = watched.iter().map(|(path, _)| path.as_path()).collect();
        let is_both = |path: &Path| {
            let nearest = path.ancestors().find(|above| own.contains(above));
            nearest.is_some_and(|nearest| both.contains(nearest))
        };
        let ours = ours.into_iter().filter(|(path, _)| !is_both(path));
        ours.chain(picture.into_iter().filter(|(path, _)| is_both(path)))
            .collect()
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        // The lock stays: somebody may be about to take it.
        if self.begin() == Company::Nobody {
            fs::remove_file(&self.file).ok();
        }
    }
}

/// Opens a file of our own, which is made if need be.
fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

fn is_the_same(a: &Picture, b: &Picture) -> bool {
    a.len() == b.len()
        && a.iter()
            .all(|(path, node)| b.get(path).is_some_and(|other| node.is_the_same_as(other)))
}

/// A picture as it stands in the file; paths and names in base64, for they need not be text.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    watched: Vec<(String, u8)>,
    nodes: Vec<(String, KeptNode)>,
}

#[derive(Debug, Serialize, Deserialize)]
enum KeptNode {
    File {
        content: Option<String>,
        mode: u32,
        size: u64,
        inode: Inode,
        names: u64,
        changed: (i64, i64),
        settled: bool,
    },
    Directory {
        mode: u32,
        inode: Inode,
        depth: u8,
        names: Option<Vec<String>>,
    },
    Link {
        target: String,
    },
    Other {
        inode: Inode,
    },
    Unknown,
}

impl Kept {
    fn of(watched: &[(PathBuf, Depth)], picture: &Picture) -> Self {
        Self {
            watched: Self::watched(watched),
            nodes: picture
                .iter()
                .map(|(path, node)| (encode(path), KeptNode::of(node)))
                .collect(),
        }
    }

    fn watched(watched: &[(PathBuf, Depth)]) -> Vec<(String, u8)> {
        watched
            .iter()
            .map(|(path, depth)| (encode(path), *depth as u8))
            .collect()
    }

    fn picture(&self, root: &Arc<OwnedFd>) -> Option<Picture> {
        self.nodes
            .iter()
            .map(|(path, node)| {
                let path = PathBuf::from(decode(path)?);
                let node = node.node(root, &path)?;
                Some((path, node))
            })
            .collect()
    }
}

impl KeptNode {
    fn of(node: &Node) -> Self {
        match node {
            Node::File {
                content,
                stamp,
                settled,
            } => Self::File {
                content: content.as_ref().map(|content| STANDARD.encode(content)),
                mode: stamp.mode,
                size: stamp.size,
                inode: stamp.inode,
                names: stamp.names,
                changed: stamp.changed,
                settled: *settled,
            },
            Node::Directory {
                stamp,
                settled: _,
                depth,
                names,
                held: _,
            } => Self::Directory {
                mode: stamp.mode,
                inode: stamp.inode,
                depth: *depth as u8,
                names: names.as_ref().map(|names| names.iter().map(encode).collect()),
            },
            Node::Link { target } => Self::Link {
                target: encode(target),
            },
            Node::Other { inode } => Self::Other { inode: *inode },
            Node::Unknown => Self::Unknown,
        }
    }

    /// The node again; a directory that is still the same is held anew.
    fn node(&self, root: &Arc<OwnedFd>, path: &Path) -> Option<Node> {
        Some(match self {
            Self::File {
                content,
                mode,
                size,
                inode,
                names,
                changed,
                settled,
            } => Node::File {
                content: match content {
                    Some(content) => Some(STANDARD.decode(content).ok()?.into()),
                    None => None,
                },
                stamp: Stamp {
                    kind: FileType::RegularFile,
                    mode: *mode,
                    size: *size,
                    inode: *inode,
                    names: *names,
                    changed: *changed,
                },
                settled: *settled,
            },
            Self::Directory {
                mode,
                inode,
                depth,
                names,
            } => Node::Directory {
                stamp: Stamp {
                    kind: FileType::Directory,
                    mode: *mode,
                    size: 0,
                    inode: *inode,
                    names: 0,
                    changed: (0, 0),
                },
                // Whoever reads this looks for itself.
                settled: false,
                depth: Depth::by_number(*depth)?,
                names: match names {
                    Some(names) => Some(Arc::new(
                        names.iter().map(|name| decode(name)).collect::<Option<_>>()?,
                    )),
                    None => None,
                },
                held: held(root, path, *inode).filter(|_| *depth == Depth::Itself as u8),
            },
            Self::Link { target } => Node::Link {
                target: decode(target)?.into(),
            },
            Self::Other { inode } => Node::Other { inode: *inode },
            Self::Unknown => Node::Unknown,
        })
    }
}

fn held(root: &Arc<OwnedFd>, path: &Path, inode: Inode) -> Option<Arc<OwnedFd>> {
    Place::below(root, path).ok()?.hold_as(inode)
}

fn encode(text: impl AsRef<std::ffi::OsStr>) -> String {
    STANDARD.encode(text.as_ref().as_bytes())
}

fn decode(text: &str) -> Option<OsString> {
    STANDARD.decode(text).ok().map(OsString::from_vec)
}
