//! JSON documents in a stream, with whatever stands around them.
//!
//! Watches brackets only: a document is handed out the moment its last bracket closes, and whether it is really JSON is for
//! the parser to say. Text that cannot be JSON is skipped at its first impossible byte.

use std::mem;

use memchr::{memchr2, memchr3};

/// A name in every object of a document that was cut off before its own end.
pub(crate) const CUT_OFF: &str = "ahma/cut_off";

/// How often text that began like a document and never ended is looked through again at the end of the output.
const MAX_SECOND_LOOKS: usize = 16;

/// Cuts bytes into JSON documents. Holds at most one document of at most `max_bytes`.
#[derive(Debug)]
pub(crate) struct DocumentReader {
    buffer: Vec<u8>,
    max_bytes: usize,
    state: State,
    has_skipped: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    Outside,
    Inside {
        depth: usize,
        is_too_long: bool,
    },
    InString {
        depth: usize,
        is_too_long: bool,
    },
    /// Behind a backslash in a string.
    Escaped {
        depth: usize,
        is_too_long: bool,
    },
}

impl DocumentReader {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self {
            buffer: Vec::new(),
            max_bytes,
            state: State::Outside,
            has_skipped: false,
        }
    }

    /// Whether a document was passed over because it is too long.
    pub(crate) fn has_skipped(&self) -> bool {
        self.has_skipped
    }

    /// How much of a document is held.
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
        // Those that were opened behind the end stand behind those that were open there.
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
                State::Outside => {
                    let start = memchr2(b'{', b'[', input).unwrap_or(input.len());
                    *input = &input[start..];
                    if !input.is_empty() {
                        self.state = State::Inside {
                            depth: 0,
                            is_too_long: false,
                        };
                    }
                }
                State::Inside { depth, is_too_long } => {
                    if let Some(document) = self.read_structure(input, depth, is_too_long) {
                        return Some(document);
                    }
                }
                State::InString { depth, is_too_long } => self.read_string(input, depth, is_too_long),
                State::Escaped { depth, is_too_long } => {
                    let is_too_long = self.take(input, 1, is_too_long);
                    self.state = State::InString { depth, is_too_long };
                }
            }
        }
        None
    }

    /// The documents that hide in what is left at the end of the output: in a report, say, whose writer was killed.
    pub(crate) fn finish(&mut self) -> Vec<String> {
        let mut documents = Vec::new();
        for _ in 0..MAX_SECOND_LOOKS {
            let rest = mem::take(&mut self.buffer);
            self.state = State::Outside;
            // What is in the buffer begins with a bracket that nothing closes.
            let Some(mut input) = rest.get(1..) else { break };
            while let Some(document) = self.next_document(&mut input) {
                documents.push(document);
            }
        }
        documents
    }

    /// Reads outside of strings, up to a quote, the end of the document or a byte that cannot be JSON.
    fn read_structure(&mut self, input: &mut &[u8], mut depth: usize, is_too_long: bool) -> Option<String> {
        for (index, byte) in input.iter().enumerate() {
            match byte {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth -= 1;
                    if depth == 0 {
                        let is_too_long = self.take(input, index + 1, is_too_long);
                        self.state = State::Outside;
                        let document = mem::take(&mut self.buffer);
                        return (!is_too_long).then(|| String::from_utf8_lossy(&document).into_owned());
                    }
                }
                b'"' => {
                    let is_too_long = self.take(input, index + 1, is_too_long);
                    self.state = State::InString { depth, is_too_long };
                    return None;
                }
                b' ' | b'\t' | b'\r' | b'\n' | b':' | b',' | b'0'..=b'9' | b'+' | b'-' | b'.' => {}
                // The letters of true, false, null and exponents.
                b'a' | b'e' | b'E' | b'f' | b'l' | b'n' | b'r' | b's' | b't' | b'u' => {}
                _ => {
                    *input = &input[index..];
                    self.abandon();
                    return None;
                }
            }
        }
        let is_too_long = self.take(input, input.len(), is_too_long);
        self.state = State::Inside { depth, is_too_long };
        None
    }

    fn read_string(&mut self, input: &mut &[u8], depth: usize, is_too_long: bool) {
        let Some(index) = memchr3(b'"', b'\\', b'\n', input) else {
            let is_too_long = self.take(input, input.len(), is_too_long);
            self.state = State::InString { depth, is_too_long };
            return;
        };
        let byte = input[index];
        if byte == b'\n' {
            *input = &input[index..];
            self.abandon();
            return;
        }
        let is_too_long = self.take(input, index + 1, is_too_long);
        self.state = match byte {
            b'"' => State::Inside { depth, is_too_long },
            _ => State::Escaped { depth, is_too_long },
        };
    }

    /// Moves bytes from the input to the buffer; once a document is too long, only past it.
    fn take(&mut self, input: &mut &[u8], count: usize, is_too_long: bool) -> bool {
        let (taken, rest) = input.split_at(count);
        *input = rest;
        let is_too_long = is_too_long || self.buffer.len() + count > self.max_bytes;
        if is_too_long {
            self.has_skipped = true;
            self.buffer = Vec::new();
        } else {
            self.buffer.extend_from_slice(taken);
        }
        is_too_long
    }

    fn abandon(&mut self) {
        self.buffer.clear();
        self.state = State::Outside;
    }
}

/// What stands behind the end of the string that `text` is in.
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
