//! The file with the tokens of all servers, safe in a directory that others can write to.
//!
//! The path is in the system's temporary directory by default, so the file may be a trap: a symbolic link, a hard
//! link, or another user's file. It is opened without following links, its owner, type and link count are
//! checked on the open descriptor, and it is replaced by renaming a fresh 0600 file over it.
//! It must never be read or written through its path alone.

use std::{
    collections::BTreeMap,
    fs::File,
    io::Read,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use ahma_common::private_file;
use rmcp::transport::auth::StoredCredentials;
use rustix::{
    fs::{FileType, FlockOperation, Mode, OFlags},
    io::Errno,
};
use serde::{Deserialize, Serialize};

/// A token file holds a handful of entries of a few KiB; more than this is not one of ours.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// Longest wait for a refresh in another process.
const LOCK_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    #[error("token file {}: {reason}; remove it, or name another with AHMA_HTTP_CLIENT_TOKEN_PATH", path.display())]
    Untrusted { path: PathBuf, reason: &'static str },
    #[error("token file {} is damaged; remove it and log in again", path.display())]
    Damaged {
        path: PathBuf,
        source: serde_json::Error,
    },
    #[error("cannot {action} token file {}", path.display())]
    Io {
        path: PathBuf,
        action: &'static str,
        source: std::io::Error,
    },
    #[error("token file {} has been locked by another process for {} s", path.display(), LOCK_TIMEOUT.as_secs())]
    Busy { path: PathBuf },
}

/// One server's entry.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct TokenEntry {
    #[serde(flatten)]
    pub(crate) credentials: StoredCredentials,
    /// The secret that came with a dynamic registration: without it a refresh would be refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) client_secret: Option<String>,
}

#[derive(Default, Serialize, Deserialize)]
struct Contents {
    #[serde(default)]
    servers: BTreeMap<String, TokenEntry>,
}

/// A file that stores tokens.
#[derive(Debug, Clone)]
pub struct TokenFile {
    path: Arc<Path>,
}

impl TokenFile {
    pub const FILE_NAME: &'static str = "mcp_http_token.json";

    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into().into(),
        }
    }

    /// `mcp_http_token.json` in the system's temporary directory. Where that is another user's, this user's number is in
    /// the name.
    pub fn in_temp_dir() -> Self {
        Self::of_user_in(&std::env::temp_dir())
    }

    pub(super) fn of_user_in(directory: &Path) -> Self {
        let user = rustix::process::geteuid().as_raw();
        let owner = |path: &Path| std::fs::symlink_metadata(path).ok().map(|found| found.uid());
        let common = directory.join(Self::FILE_NAME);
        let own = directory.join(format!("mcp_http_token.{user}.json"));
        let common_is_taken = owner(&common).is_some_and(|owner| owner != user);
        // A file of one's own that is there once stays in use, or its logins would be lost.
        if common_is_taken || owner(&own) == Some(user) {
            return Self::at(own);
        }
        Self::at(common)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) async fn entry(&self, server: &str) -> Result<Option<TokenEntry>, TokenFileError> {
        let server = server.to_owned();
        self.blocking(move |file| Ok(file.read()?.servers.remove(&server)))
            .await
    }

    /// Changes one server's entry and leaves the others as another process may just have written them.
    ///
    /// Nothing is written if `change` returns false.
    pub(crate) async fn update(
        &self,
        server: &str,
        change: impl FnOnce(&mut Option<TokenEntry>) -> bool + Send + 'static,
    ) -> Result<(), TokenFileError> {
        let server = server.to_owned();
        let _writer = self.lock("write").await?;
        self.blocking(move |file| {
            let mut contents = file.read()?;
            let mut entry = contents.servers.remove(&server);
            if !change(&mut entry) {
                return Ok(());
            }
            contents.servers.extend(entry.map(|entry| (server, entry)));
            file.replace(&contents)
        })
        .await
    }

    /// An exclusive lock, shared with other processes; dropping the file releases it.
    ///
    /// `purpose` names the lock file. Locks are separate files, since the token file itself is replaced. Each user has
    /// their own: one that outlives its token file must not lock the next user out.
    pub(crate) async fn lock(&self, purpose: &str) -> Result<File, TokenFileError> {
        let mut path = self.path.as_os_str().to_owned();
        let user = rustix::process::geteuid().as_raw();
        path.push(format!(".{user}.{purpose}.lock"));
        let path = PathBuf::from(path);
        let file = self
            .blocking(move |_| open_trusted(&path, OFlags::RDWR | OFlags::CREATE))
            .await?;
        let deadline = tokio::time::Instant::now() + LOCK_TIMEOUT;
        // A blocking flock could not be abandoned when the caller is; a lock is held for one request at most.
        loop {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(file),
                Err(Errno::WOULDBLOCK | Errno::INTR) => {}
                Err(error) => return Err(self.io("lock", error)),
            }
            if tokio::time::Instant::now() > deadline {
                return Err(TokenFileError::Busy {
                    path: self.path.to_path_buf(),
                });
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, TokenFileError> + Send + 'static,
    ) -> Result<T, TokenFileError> {
        let file = self.clone();
        match tokio::task::spawn_blocking(move || work(&file)).await {
            Ok(result) => result,
            Err(error) => Err(self.io("use", std::io::Error::other(error))),
        }
    }

    fn read(&self) -> Result<Contents, TokenFileError> {
        let file = match open_trusted(&self.path, OFlags::RDONLY) {
            Ok(file) => file,
            Err(TokenFileError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Contents::default());
            }
            Err(error) => return Err(error),
        };
        let mut text = Vec::new();
        file.take(MAX_FILE_BYTES)
            .read_to_end(&mut text)
            .map_err(|error| self.io("read", error))?;
        if text.is_empty() {
            return Ok(Contents::default());
        }
        serde_json::from_slice(&text).map_err(|source| TokenFileError::Damaged {
            path: self.path.to_path_buf(),
            source,
        })
    }

    /// Fails where an entry could not be stored; changes nothing.
    pub(crate) async fn check_writable(&self) -> Result<(), TokenFileError> {
        self.blocking(|file| {
            file.read()?;
            private_file::check_replaceable(&file.path).map_err(|error| file.io("write", error))
        })
        .await
    }

    fn replace(&self, contents: &Contents) -> Result<(), TokenFileError> {
        let text = serde_json::to_vec_pretty(contents).map_err(|error| self.io("write", error))?;
        private_file::replace(&self.path, &text).map_err(|error| self.io("replace", error))
    }

    fn io(&self, action: &'static str, source: impl Into<std::io::Error>) -> TokenFileError {
        TokenFileError::Io {
            path: self.path.to_path_buf(),
            action,
            source: source.into(),
        }
    }
}

/// Opens a file that this user created and no other user can have written to.
fn open_trusted(path: &Path, flags: OFlags) -> Result<File, TokenFileError> {
    let untrusted = |reason| TokenFileError::Untrusted {
        path: path.to_owned(),
        reason,
    };
    let io = |source: Errno| TokenFileError::Io {
        path: path.to_owned(),
        action: "open",
        source: source.into(),
    };
    // NONBLOCK: a FIFO laid in our way must not hang us.
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let descriptor = match rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR) {
        Ok(descriptor) => descriptor,
        Err(Errno::LOOP) => return Err(untrusted("is a symbolic link")),
        Err(error) => return Err(io(error)),
    };
    let stat = rustix::fs::fstat(&descriptor).map_err(io)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(untrusted("is not a regular file"));
    }
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(untrusted("belongs to another user"));
    }
    // None at all means that another process has replaced the file since it was opened; what was opened is still ours.
    if stat.st_nlink > 1 {
        return Err(untrusted("has a second name (hard link)"));
    }
    let mode = Mode::from_raw_mode(stat.st_mode);
    if mode.intersects(Mode::WGRP | Mode::WOTH) {
        return Err(untrusted("can be written by others"));
    }
    if mode.intersects(Mode::RWXG | Mode::RWXO) {
        rustix::fs::fchmod(&descriptor, Mode::RUSR | Mode::WUSR).map_err(io)?;
        tracing::warn!(path = %path.display(), "token file could be read by others; closed it");
    }
    Ok(File::from(descriptor))
}
