//! A file's text as UTF-8, and how the file stores it: encoding, byte order mark, line endings.

/// Bytes inspected to tell text from binary.
const SNIFFED_BYTES: usize = 8 * 1024;

const UTF8_BOM: &[u8] = b"\xef\xbb\xbf";
const UTF16_LE_BOM: &[u8] = b"\xff\xfe";
const UTF16_BE_BOM: &[u8] = b"\xfe\xff";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    /// Also any single-byte encoding: bytes that are not UTF-8 are kept as they are.
    Utf8,
    Utf8WithBom,
    Utf16Le,
    Utf16Be,
}

/// The content of a text file, decoded, with what is needed to write it back in the same form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileText {
    /// Without byte order mark; UTF-8 unless the file is in some single-byte encoding.
    pub(super) content: Vec<u8>,
    encoding: Encoding,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotText {
    #[error("it is a binary file")]
    Binary,
    #[error("it starts like UTF-16 but is not valid UTF-16")]
    BrokenUtf16,
}

impl FileText {
    pub(super) fn decode(bytes: Vec<u8>) -> Result<Self, NotText> {
        let text = |content, encoding| Ok(Self { content, encoding });
        if let Some(rest) = bytes.strip_prefix(UTF16_LE_BOM) {
            return text(from_utf16(rest, u16::from_le_bytes)?, Encoding::Utf16Le);
        }
        if let Some(rest) = bytes.strip_prefix(UTF16_BE_BOM) {
            return text(from_utf16(rest, u16::from_be_bytes)?, Encoding::Utf16Be);
        }
        if is_binary(&bytes) {
            return Err(NotText::Binary);
        }
        match bytes.strip_prefix(UTF8_BOM) {
            Some(rest) => text(rest.to_vec(), Encoding::Utf8WithBom),
            None => text(bytes, Encoding::Utf8),
        }
    }

    /// The bytes of a file with another content, in the encoding of the file that was decoded.
    pub(super) fn encode(&self, content: Vec<u8>) -> Vec<u8> {
        match self.encoding {
            Encoding::Utf8 => content,
            Encoding::Utf8WithBom => [UTF8_BOM, &content].concat(),
            Encoding::Utf16Le => to_utf16(UTF16_LE_BOM, &content, u16::to_le_bytes),
            Encoding::Utf16Be => to_utf16(UTF16_BE_BOM, &content, u16::to_be_bytes),
        }
    }
}

/// A NUL byte near the start marks a binary file, as git decides it.
pub(super) fn is_binary(bytes: &[u8]) -> bool {
    bytes[..bytes.len().min(SNIFFED_BYTES)].contains(&0)
}

/// The line ending that most lines of a text have.
pub(super) fn line_ending(content: &[u8]) -> &'static str {
    let all = content.iter().filter(|byte| **byte == b'\n').count();
    let windows = content.windows(2).filter(|pair| pair == b"\r\n").count();
    if windows * 2 > all { "\r\n" } else { "\n" }
}

/// Lines without their endings; a final newline does not start another line.
pub(super) fn lines(content: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = content.split(|byte| *byte == b'\n').collect();
    if lines.last().is_some_and(|last| last.is_empty()) {
        lines.pop();
    }
    lines
        .into_iter()
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .collect()
}

/// Number of the line that holds this byte, counted from 1.
pub(super) fn line_number(content: &[u8], at: usize) -> usize {
    1 + content[..at].iter().filter(|byte| **byte == b'\n').count()
}

fn from_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<Vec<u8>, NotText> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(NotText::BrokenUtf16);
    }
    let units = pairs.iter().map(|pair| unit(*pair));
    let decoded: Result<String, _> = char::decode_utf16(units).collect();
    decoded.map(String::into_bytes).map_err(|_| NotText::BrokenUtf16)
}

fn to_utf16(bom: &[u8], content: &[u8], bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    // What came from UTF-16 and was edited with UTF-8 text is UTF-8.
    let text = String::from_utf8_lossy(content);
    bom.iter()
        .copied()
        .chain(text.encode_utf16().flat_map(bytes))
        .collect()
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
