//! One spool file: bytes of output on disk, plain while they come, later perhaps compressed.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use rustix::fs::OFlags;

use super::{frames::FrameReader, spool::Spool};

/// Suffix of a compressed file.
pub(crate) const COMPRESSED_EXTENSION: &str = "zst";

/// A spool file, as its readers see it.
#[derive(Debug)]
pub struct SpoolFile {
    place: Mutex<SpoolPlace>,
    end: SpoolEnd,
}

/// Form and path of the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SpoolPlace {
    Plain(PathBuf),
    /// Frames of zstd.
    Compressed(PathBuf),
}

/// Treatment of a file that has no reader any more.
#[derive(Debug)]
enum SpoolEnd {
    /// Its directory is there as long as it is.
    Removed { _spool: Arc<Spool> },
    /// The history decides.
    Kept,
}

/// An open spool file.
#[derive(Debug)]
pub(crate) enum SpoolReader {
    Plain(File),
    Compressed(FrameReader),
}

impl SpoolFile {
    /// Deleted with its last reader.
    pub(super) fn temporary(path: PathBuf, spool: Arc<Spool>) -> Self {
        Self {
            place: Mutex::new(SpoolPlace::Plain(path)),
            end: SpoolEnd::Removed { _spool: spool },
        }
    }

    /// Left where it is.
    pub(crate) fn kept(place: SpoolPlace) -> Self {
        Self {
            place: Mutex::new(place),
            end: SpoolEnd::Kept,
        }
    }

    /// True if it is left where it is.
    pub(super) fn is_kept(&self) -> bool {
        matches!(self.end, SpoolEnd::Kept)
    }

    pub(crate) fn open(&self) -> io::Result<SpoolReader> {
        // Under the lock: the plain file is removed once the compressed one has its place.
        let place = self.place.lock();
        let open = |path: &Path| {
            OpenOptions::new()
                .read(true)
                .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
                .open(path)
        };
        let open_compressed = |path: &Path| {
            open(path)
                .and_then(FrameReader::open)
                .map(SpoolReader::Compressed)
        };
        match (&*place, &self.end) {
            (SpoolPlace::Plain(path), SpoolEnd::Removed { .. }) => open(path).map(SpoolReader::Plain),
            (SpoolPlace::Plain(path), SpoolEnd::Kept) => match open(path) {
                // Another server may have compressed it meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    open_compressed(&path.with_extension(COMPRESSED_EXTENSION)).map_err(|_| error)
                }
                opened => opened.map(SpoolReader::Plain),
            },
            (SpoolPlace::Compressed(path), _) => open_compressed(path),
        }
    }

    /// Readers find the bytes there from now on.
    pub(crate) fn moved_to(&self, place: SpoolPlace) {
        *self.place.lock() = place;
    }

    pub(crate) fn path(&self) -> PathBuf {
        match &*self.place.lock() {
            SpoolPlace::Plain(path) | SpoolPlace::Compressed(path) => path.clone(),
        }
    }
}

impl Drop for SpoolFile {
    fn drop(&mut self) {
        if let SpoolEnd::Removed { .. } = self.end {
            let path = self.path();
            if let Err(error) = fs::remove_file(&path) {
                tracing::warn!(path = %path.display(), %error, "cannot remove a spool file");
            }
        }
    }
}

impl SpoolReader {
    /// Bytes of output in it.
    pub(crate) fn len(&self) -> io::Result<u64> {
        match self {
            Self::Plain(file) => Ok(file.metadata()?.len()),
            Self::Compressed(frames) => Ok(frames.len()),
        }
    }

    pub(crate) fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.read_exact_at(buffer, offset),
            Self::Compressed(frames) => frames.read_exact_at(buffer, offset),
        }
    }
}
