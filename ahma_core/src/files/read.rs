//! Numbered lines of files, within a budget of bytes.

use std::{
    fmt::Write as _,
    fs::{self, File},
    io::{self, BufRead, BufReader, Read, Seek},
    path::Path,
};

use super::text::{FileText, is_binary};
use crate::call::ReadRequest;

/// Characters shown of one line.
const MAX_LINE_CHARS: usize = 500;
/// Names shown of a directory.
const MAX_ENTRIES: usize = 200;
/// Largest file in UTF-16 that is decoded.
const MAX_DECODED_BYTES: u64 = 16 * 1024 * 1024;

/// The contents, and whether every path could be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReadAnswer {
    pub(super) text: String,
    pub(super) complete: bool,
}

/// Shows the lines asked for, of one file after another.
pub(super) fn read(request: &ReadRequest) -> ReadAnswer {
    let several = request.paths.len() > 1;
    let mut answer = ReadAnswer {
        text: String::new(),
        complete: true,
    };
    for path in &request.paths {
        if several {
            let blank = if answer.text.is_empty() { "" } else { "\n" };
            let _ = writeln!(answer.text, "{blank}==> {} <==", path.display());
        }
        if let Err(error) = show(path, request, &mut answer.text) {
            let _ = writeln!(answer.text, "{}: {error}", path.display());
            answer.complete = false;
        }
    }
    answer
}

fn show(path: &Path, request: &ReadRequest, text: &mut String) -> io::Result<()> {
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return list(path, text);
    }
    let mut start = Vec::new();
    file.by_ref().take(8 * 1024).read_to_end(&mut start)?;
    let is_utf16 = start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff");
    if is_utf16 && metadata.len() <= MAX_DECODED_BYTES {
        file.rewind()?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        if let Ok(decoded) = FileText::decode(bytes) {
            return show_lines(path, request, &decoded.content[..], text);
        }
    }
    if is_binary(&start) {
        let _ = writeln!(text, "binary file, {} bytes", metadata.len());
        return Ok(());
    }
    // Not rewound but chained: a pipe or a device cannot be.
    let rest = io::Cursor::new(start).chain(file);
    show_lines(path, request, BufReader::with_capacity(64 * 1024, rest), text)
}

fn show_lines(
    path: &Path,
    request: &ReadRequest,
    mut reader: impl BufRead,
    text: &mut String,
) -> io::Result<()> {
    let mut number = 0;
    let mut shown = 0;
    let mut full = false;
    let mut line = Vec::new();
    while read_line(&mut reader, &mut line)? {
        number += 1;
        if number < request.from_line || full {
            continue;
        }
        let before = text.len();
        write_line(number, &line, text);
        shown += 1;
        if text.len() > request.max_bytes && shown > 1 {
            text.truncate(before);
            shown -= 1;
            full = true;
        } else {
            full = shown == request.max_lines;
        }
    }
    let next = request.from_line + shown;
    if number == 0 {
        text.push_str("(empty file)\n");
    } else if shown == 0 && !full {
        let _ = writeln!(text, "(the file has {number} lines)");
    } else if next <= number {
        let path = serde_json::json!(path.to_string_lossy());
        let _ = writeln!(
            text,
            "(lines {}–{} of {number}; file_read {{\"path\": {path}, \"from_line\": {next}}} continues)",
            request.from_line,
            next - 1
        );
    }
    Ok(())
}

/// Reads one line without its ending; of a longer one than is shown only the beginning is kept.
fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    // A character has up to four bytes; one more tells that the line was longer.
    const KEPT_BYTES: usize = 4 * MAX_LINE_CHARS + 4;
    line.clear();
    let mut any = false;
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            break;
        }
        any = true;
        let end = memchr::memchr(b'\n', buffer);
        let part = &buffer[..end.unwrap_or(buffer.len())];
        let room = KEPT_BYTES.saturating_sub(line.len());
        line.extend_from_slice(&part[..part.len().min(room)]);
        let used = part.len() + usize::from(end.is_some());
        reader.consume(used);
        if end.is_some() {
            break;
        }
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Ok(any)
}

fn write_line(number: usize, line: &[u8], text: &mut String) {
    let line = String::from_utf8_lossy(line);
    match line.char_indices().nth(MAX_LINE_CHARS) {
        Some((cut, _)) => {
            let _ = writeln!(text, "{number}\t{}… (long line, cut)", &line[..cut]);
        }
        None => {
            let _ = writeln!(text, "{number}\t{line}");
        }
    }
}

fn list(path: &Path, text: &mut String) -> io::Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let slash = if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            "/"
        } else {
            ""
        };
        names.push(format!("{}{slash}", entry.file_name().to_string_lossy()));
    }
    names.sort_unstable();
    let more = names.len().saturating_sub(MAX_ENTRIES);
    names.truncate(MAX_ENTRIES);
    let _ = writeln!(text, "(directory)\n{}", names.join("\n"));
    if more > 0 {
        let _ = writeln!(text, "({more} more)");
    }
    Ok(())
}
