//! The newest lines of a trail.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// The part of the file in which lines are looked for.
const TAIL_BYTES: u64 = 256 << 10;

/// At most `lines` lines from the last 256 KB of a trail, the newest last.
pub fn newest_lines(path: &Path, lines: usize) -> io::Result<Vec<String>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail)?;
    let tail = String::from_utf8_lossy(&tail);
    // The first may be a part of one.
    let skipped = usize::from(length > TAIL_BYTES);
    let found: Vec<&str> = tail.lines().skip(skipped).collect();
    let newest = &found[found.len().saturating_sub(lines)..];
    Ok(newest.iter().map(|&line| line.to_owned()).collect())
}
