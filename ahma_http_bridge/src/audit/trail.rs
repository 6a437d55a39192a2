//! The file of a trail, and those that were set aside before it.
//!
//! A line is in the file whole or not at all: what a full disk let through of one is taken back, and what a crash left
//! of one is noted by the next start. The chain goes on from the last whole line, and the next one says how many are
//! missing.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::digest::{hex, sha256};
use crate::harmless::harmless_json;

/// A file that grew over this is set aside with a number.
const ROTATE_BYTES: u64 = 64 << 20;
pub(super) const KEPT_FILES: u32 = 8;
/// The hash that the first line of a trail refers back to.
const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";
/// Of an unfinished line no more than this is kept. Few lines are longer, and a crash may leave any amount of zeros.
const MAX_UNFINISHED_BYTES: usize = 4096;

/// The file behind a trail.
pub(super) struct Trail {
    path: PathBuf,
    file: Box<dyn Medium>,
    size: u64,
    /// The size beyond which the file is set aside.
    rotate_at: u64,
    /// The hash of the last whole line in the file.
    last: String,
    /// Bytes at the end of the file that are no whole line.
    torn: u64,
    /// Lines that are missing after the last one.
    lost: u64,
}

/// The file of a trail; tests use one that fails on demand.
pub(super) trait Medium: Write + Send {
    /// Removes the last bytes.
    fn take_back(&mut self, bytes: u64) -> io::Result<()>;
}

impl Medium for File {
    fn take_back(&mut self, bytes: u64) -> io::Result<()> {
        let length = self.metadata()?.len();
        self.set_len(length.saturating_sub(bytes))
    }
}

impl Trail {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let TrailEnd { last, tail } = ending(path)?;
        let last = match last {
            Some(last) => last,
            None => origin(&numbered(path, 1))?,
        };
        let file = append_to(path)?;
        let size = file.metadata()?.len();
        let mut trail = Self {
            path: path.to_owned(),
            file: Box::new(file),
            size,
            rotate_at: ROTATE_BYTES,
            last,
            torn: 0,
            lost: 0,
        };
        match tail {
            Tail::LineBreak => {}
            Tail::WholeLine => {
                trail.file.write_all(b"\n")?;
                trail.size += 1;
            }
            Tail::Unfinished(text) => trail.note_unfinished(&text)?,
        }
        Ok(trail)
    }

    /// A trail that is written to something else than its file.
    #[cfg(test)]
    pub(super) fn onto(path: &Path, medium: Box<dyn Medium>) -> io::Result<Self> {
        Ok(Self {
            file: medium,
            ..Self::open(path)?
        })
    }

    /// True if the last attempt to write a line failed.
    pub(super) fn is_failing(&self) -> bool {
        self.lost > 0
    }

    /// Writes a line before which `dropped` others never got here. If it fails, the line counts as lost.
    pub(super) fn write(&mut self, mut line: Map<String, Value>, dropped: u64) -> io::Result<()> {
        if self.size > self.rotate_at && self.torn == 0 {
            self.rotate_if_possible();
        }
        let missing = self.lost + dropped;
        if missing > 0 {
            line.insert("dropped_before".to_owned(), missing.into());
        }
        line.insert("previous".to_owned(), self.last.clone().into());
        let text = harmless_json(&Value::Object(line));
        let written = self.append(&format!("{text}\n"));
        match written {
            Ok(()) => {
                self.last = hash_of(text.as_bytes());
                self.size += text.len() as u64 + 1;
                self.lost = 0;
            }
            Err(_) => self.lost = missing + 1,
        }
        written
    }

    /// Appends all of the text or, as far as the disk allows, nothing.
    fn append(&mut self, text: &str) -> io::Result<()> {
        self.take_back_torn()?;
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            let failed = match self.file.write(rest) {
                Ok(0) => ErrorKind::WriteZero.into(),
                Ok(count) => {
                    self.torn += count as u64;
                    rest = &rest[count..];
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => error,
            };
            // At once, so that a crash leaves whole lines. If it cannot be done now, the next line tries again.
            let _ = self.take_back_torn();
            return Err(failed);
        }
        self.torn = 0;
        Ok(())
    }

    fn take_back_torn(&mut self) -> io::Result<()> {
        if self.torn > 0 {
            self.file.take_back(self.torn)?;
            self.torn = 0;
        }
        Ok(())
    }

    /// Replaces a line that a crash left unfinished by a note about it.
    fn note_unfinished(&mut self, text: &[u8]) -> io::Result<()> {
        tracing::warn!(path = %self.path.display(), "the last line of the audit trail is unfinished; it is noted there");
        self.torn = text.len() as u64;
        self.size -= self.torn;
        let kept = String::from_utf8_lossy(&text[..text.len().min(MAX_UNFINISHED_BYTES)]);
        let note = line("unfinished_line", json!({ "text": kept, "bytes": text.len() }));
        // The line itself is missing.
        self.write(note, 1).inspect_err(|_| {
            // Nothing else records it, so it is put back unless it is still there.
            if self.torn == 0 {
                let _ = self.file.write_all(text);
            }
        })
    }

    /// A file that cannot be set aside grows on: a line in a large file is better than none.
    fn rotate_if_possible(&mut self) {
        self.rotate_at = match self.rotate() {
            Ok(()) => ROTATE_BYTES,
            Err(error) => {
                tracing::error!(%error, path = %self.path.display(), "the audit file cannot be set aside and grows on");
                self.size + ROTATE_BYTES
            }
        };
    }

    /// The new file goes on with the chain of the old one.
    fn rotate(&mut self) -> io::Result<()> {
        let aside = |number: u32| numbered(&self.path, number);
        // Only up to the first free number, so that trying again after a failure pushes no file out at the end.
        let free = (1..KEPT_FILES)
            .find(|number| !aside(*number).exists())
            .unwrap_or(KEPT_FILES);
        for number in (1..free).rev() {
            std::fs::rename(aside(number), aside(number + 1))?;
        }
        std::fs::rename(&self.path, aside(1))?;
        let file = append_to(&self.path).inspect_err(|_| {
            // The next start looks for the newest lines under that name.
            let _ = std::fs::rename(aside(1), &self.path);
        })?;
        self.file = Box::new(file);
        self.size = 0;
        Ok(())
    }
}

fn append_to(path: &Path) -> io::Result<File> {
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

/// The hash that the first line after `before` refers back to.
pub(super) fn origin(before: &Path) -> io::Result<String> {
    Ok(ending(before)?.last.unwrap_or_else(|| GENESIS.to_owned()))
}

/// The end of a file of a trail.
struct TrailEnd {
    /// The hash of the last whole line; `None` if there is none.
    last: Option<String>,
    tail: Tail,
}

/// The last bytes.
enum Tail {
    /// As it should be, or there is nothing at all.
    LineBreak,
    /// A line that lacks nothing but its line break.
    WholeLine,
    Unfinished(Vec<u8>),
}

fn ending(path: &Path) -> io::Result<TrailEnd> {
    let mut ending = TrailEnd {
        last: None,
        tail: Tail::LineBreak,
    };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(ending),
        Err(error) => return Err(error),
    };
    let mut last = None;
    for line in lines_of(file) {
        let line = line?;
        if line.is_unfinished() {
            ending.tail = Tail::Unfinished(line.text);
        } else {
            if !line.has_break {
                ending.tail = Tail::WholeLine;
            }
            last = Some(line.text);
        }
    }
    ending.last = last.as_deref().map(hash_of);
    Ok(ending)
}

/// A line as it stands in a file, without its line break.
pub(super) struct Line {
    pub(super) text: Vec<u8>,
    /// Only the last one may lack it.
    has_break: bool,
}

impl Line {
    /// True if its writing was interrupted.
    pub(super) fn is_unfinished(&self) -> bool {
        !self.has_break && serde_json::from_slice::<IgnoredAny>(&self.text).is_err()
    }
}

pub(super) fn lines_of(file: File) -> impl Iterator<Item = io::Result<Line>> {
    let mut reader = BufReader::new(file);
    std::iter::from_fn(move || {
        let mut text = Vec::new();
        match reader.read_until(b'\n', &mut text) {
            Ok(0) => None,
            Ok(_) => {
                let has_break = text.pop_if(|byte| *byte == b'\n').is_some();
                Some(Ok(Line { text, has_break }))
            }
            Err(error) => Some(Err(error)),
        }
    })
}

/// Members of every line.
pub(super) fn line(event: &str, fields: Value) -> Map<String, Value> {
    let mut line = Map::new();
    let now = OffsetDateTime::now_utc().format(&Rfc3339).unwrap_or_default();
    line.insert("time".to_owned(), now.into());
    line.insert("event".to_owned(), event.into());
    if let Value::Object(fields) = fields {
        line.extend(fields);
    }
    line
}

pub(super) fn hash_of(line: &[u8]) -> String {
    hex(sha256(line))
}

#[cfg(test)]
#[path = "trail_tests.rs"]
mod tests;
