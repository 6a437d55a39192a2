//! The file of a trail, and those that were set aside before it.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// A file that grew over this is set aside with a number.
const ROTATE_BYTES: u64 = 64 << 20;
pub(super) const KEPT_FILES: u32 = 8;
/// What the first line of a trail refers back to.
const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The file behind a trail.
pub(super) struct Trail {
    path: PathBuf,
    file: BufWriter<File>,
    size: u64,
    /// The hash of the line written last.
    last: String,
}

impl Trail {
    pub(super) fn open(path: &Path) -> std::io::Result<Self> {
        let last = match last_hash(path)? {
            Some(last) => last,
            None => origin(&numbered(path, 1))?,
        };
        let file = append_to(path)?;
        let size = file.metadata()?.len();
        Ok(Self {
            path: path.to_owned(),
            file: BufWriter::new(file),
            size,
            last,
        })
    }

    pub(super) fn write(&mut self, mut line: Map<String, Value>) -> std::io::Result<()> {
        if self.size > ROTATE_BYTES {
            self.rotate()?;
        }
        line.insert("previous".to_owned(), self.last.clone().into());
        let text = Value::Object(line).to_string();
        self.last = hash_of(&text);
        writeln!(self.file, "{text}")?;
        self.size += text.len() as u64 + 1;
        Ok(())
    }

    pub(super) fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }

    /// The new file goes on with the chain of the old one.
    fn rotate(&mut self) -> std::io::Result<()> {
        self.file.flush()?;
        let numbered = |number: u32| numbered(&self.path, number);
        for number in (1..KEPT_FILES).rev() {
            // A number that is not there yet is no error.
            let _ = std::fs::rename(numbered(number), numbered(number + 1));
        }
        std::fs::rename(&self.path, numbered(1))?;
        self.file = BufWriter::new(append_to(&self.path)?);
        self.size = 0;
        Ok(())
    }
}

fn append_to(path: &Path) -> std::io::Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
}

/// The file that `path` becomes when it is set aside for the `number`th time.
pub(super) fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

/// The file that was set aside before `path`, and how many times `path` itself was.
pub(super) fn predecessor(path: &Path) -> (PathBuf, u32) {
    let newest = || (numbered(path, 1), 0);
    let extension = path.extension().and_then(OsStr::to_str);
    let number = extension.and_then(|extension| extension.parse::<u32>().ok());
    match number {
        // A trail may have such a name of its own.
        Some(number) if (1..=KEPT_FILES).contains(&number) && !newest().0.exists() => {
            (numbered(&path.with_extension(""), number + 1), number)
        }
        _ => newest(),
    }
}

/// What the first line after `before` refers back to.
pub(super) fn origin(before: &Path) -> std::io::Result<String> {
    Ok(last_hash(before)?.unwrap_or_else(|| GENESIS.to_owned()))
}

/// The hash of the last line; `None` if there is none.
fn last_hash(path: &Path) -> std::io::Result<Option<String>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut last = None;
    for line in BufReader::new(file).lines() {
        last = Some(line?);
    }
    Ok(last.as_deref().map(hash_of))
}

pub(super) fn hash_of(line: &str) -> String {
    Sha256::digest(line.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
