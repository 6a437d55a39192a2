//! JSON documents in a stream, with whatever stands around them.
//!
//! Watches brackets only: a document is handed out the moment its last bracket closes, and whether it is really JSON is for
//! the parser to say. Text that cannot be JSON is skipped at its first impossible byte.

use std::mem;

use memchr::{memchr2, memchr3};

/// A name in every object of a document that was cut off before its own end.
pub(crate) const CUT_OFF: &str = "ahma/cut_off";

/// Number of times that text which began like a document and never ended is searched again at the end of the output.
const MAX_SECOND_LOOKS: usize = 16;

/// Cuts bytes into JSON documents. Holds at most one document of at most `max_bytes`.
#[derive(Debug)]
pub(crate) struct DocumentReader {
    buffer: Vec<u8>,
    max_bytes: usize,
    state: JsonState,
    /// Brackets that are open.
    depth: usize,
    /// The document is longer than `max_bytes`: it is passed over.
    is_too_long: bool,
    has_skipped: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum JsonState {
    Outside,
    Inside,
    InString,
    /// After a backslash in a string.
    Escaped,
}

impl DocumentReader {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self {
            buffer: Vec::new(),
            max_bytes,
            state: JsonState::Outside,
            depth: 0,
            is_too_long: false,
            has_skipped: false,
        }
    }

    /// True if a document was skipped because it is too long.
    pub(crate) fn has_skipped(&self) -> bool {
        self.has_skipped
    }

    /// Number of bytes of a document that are held.
    pub(crate) fn held_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// The document that the output ended in the middle of, up to the last bracket that closes something in it. What was
    /// still open is closed, and its objects marked with [`CUT_OFF`].
    pub(crate) fn cut_off(&self) -> Option<String> {
        let mut open = Vec::new();
        let mut whole = None;
        let mut rest = self.buffer.as_slice();
        while let Some((byte, behind)) = rest.split_first() {
            rest = behind;
            match byte {
                b'{' | b'[' => open.push(*byte),
                b'}' | b']' => {
                    open.pop();
                    whole = Some((self.buffer.len() - rest.len(), open.len()));
                }
                b'"' => rest = behind_string(behind),
                _ => {}
            }
        }
        let (end, depth) = whole?;
        // Brackets opened after the end stand after those that were open there.
        open.truncate(depth);
        let mut document = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
        for bracket in open.iter().rev() {
            match bracket {
                b'{' => document.push_str(&format!(",\"{CUT_OFF}\":true}}")),
                _ => document.push(']'),
            }
        }
        Some(document)
    }

    /// Eats from `input` up to the end of the next document.
    pub(crate) fn next_document(&mut self, input: &mut &[u8]) -> Option<String> {
        while !input.is_empty() {
            match self.state {
                JsonState::Outside => {
                    let start = memchr2(b'{', b'[', input).unwrap_or(input.len());
                    *input = &input[start..];
                    if !input.is_empty() {
                        self.state = JsonState::Inside;
                    }
                }
                JsonState::Inside => {
                    if let Some(document) = self.read_structure(input) {
                        return Some(document);
                    }
                }
                JsonState::InString => self.read_string(input),
                JsonState::Escaped => {
                    self.take(input, 1);
                    self.state = JsonState::InString;
                }
            }
        }
        None
    }

    /// The documents that hide in what is left at the end of the output: in a report, say, whose writer was killed.
    pub(crate) fn finish(&mut self) -> Vec<String> {
        let mut documents = Vec::new();
        for _ in 0..MAX_SECOND_LOOKS {
            let rest = self.end_document();
            // What is in the buffer begins with a bracket that nothing closes.
            let Some(mut input) = rest.get(1..) else { break };
            while let Some(document) = self.next_document(&mut input) {
                documents.push(document);
            }
        }
        documents
    }

    /// Reads outside of strings, up to a quote, the end of the document or a byte that cannot be JSON.
    fn read_structure(&mut self, input: &mut &[u8]) -> Option<String> {
        for (index, byte) in input.iter().enumerate() {
            match byte {
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        self.take(input, index + 1);
                        let is_whole = !self.is_too_long;
                        let document = self.end_document();
                        return is_whole.then(|| String::from_utf8_lossy(&document).into_owned());
                    }
                }
                b'"' => {
                    self.take(input, index + 1);
                    self.state = JsonState::InString;
                    return None;
                }
                b' ' | b'\t' | b'\r' | b'\n' | b':' | b',' | b'0'..=b'9' | b'+' | b'-' | b'.' => {}
                // The letters of true, false, null and exponents.
                b'a' | b'e' | b'E' | b'f' | b'l' | b'n' | b'r' | b's' | b't' | b'u' => {}
                _ => {
                    *input = &input[index..];
                    self.end_document();
                    return None;
                }
            }
        }
        self.take(input, input.len());
        None
    }

    fn read_string(&mut self, input: &mut &[u8]) {
        let end = memchr3(b'"', b'\\', b'\n', input);
        match end.map(|index| (index, input[index])) {
            None => self.take(input, input.len()),
            Some((index, b'\n')) => {
                *input = &input[index..];
                self.end_document();
            }
            Some((index, byte)) => {
                self.take(input, index + 1);
                self.state = if byte == b'"' {
                    JsonState::Inside
                } else {
                    JsonState::Escaped
                };
            }
        }
    }

    /// Moves bytes from the input to the buffer; once a document is too long, only past it.
    fn take(&mut self, input: &mut &[u8], count: usize) {
        let (taken, rest) = input.split_at(count);
        *input = rest;
        self.is_too_long |= self.buffer.len() + count > self.max_bytes;
        if self.is_too_long {
            self.has_skipped = true;
            self.buffer = Vec::new();
        } else {
            self.buffer.extend_from_slice(taken);
        }
    }

    /// Goes back outside; gives what was held.
    fn end_document(&mut self) -> Vec<u8> {
        (self.state, self.depth, self.is_too_long) = (JsonState::Outside, 0, false);
        mem::take(&mut self.buffer)
    }
}

/// The text after the end of the string that `text` is in.
fn behind_string(mut text: &[u8]) -> &[u8] {
    while let Some(index) = memchr2(b'"', b'\\', text) {
        let is_escape = text[index] == b'\\';
        text = text.get(index + 1 + usize::from(is_escape)..).unwrap_or_default();
        if !is_escape {
            return text;
        }
    }
    &[]
}
