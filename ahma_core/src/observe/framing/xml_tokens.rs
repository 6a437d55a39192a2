//! XML markup found in a stream of bytes, long before the document is complete.
//!
//! Only finds where tags and text begin and end. Comments, processing instructions and declarations are skipped, so no
//! entity is ever defined. Malformed markup is left behind at the next `<`.
//!
//! quick-xml cannot do this part: its reader takes the end of a chunk for the end of the document, it does not recover at the
//! next `<`, and it holds a token of any length.

use std::borrow::Cow;

use memchr::memchr;

use super::lines::{extend_up_to, whole_characters};

/// A piece of a document.
#[derive(Debug, PartialEq)]
pub(super) enum Token<'a> {
    /// The text between `<` and `>`.
    Tag(Cow<'a, str>),
    /// Text with its references still in it.
    Text(Cow<'a, str>),
    /// Text to be taken as it is.
    Cdata(Cow<'a, str>),
}

/// Cuts bytes into tokens. Holds at most one token of at most `max_bytes`.
#[derive(Debug)]
pub(super) struct TokenReader {
    buffer: Vec<u8>,
    max_bytes: usize,
    state: XmlState,
    /// The token was longer than `max_bytes`; the rest is skipped.
    is_cut: bool,
    /// The token was handed out; it is cleared by the next call.
    is_spent: bool,
}

#[derive(Debug, Clone, Copy)]
enum XmlState {
    Text,
    /// Behind `<`, as long as it is open what that begins.
    Opened,
    Tag {
        quote: Option<u8>,
    },
    Comment {
        dashes: u8,
    },
    Cdata {
        brackets: u8,
    },
    Instruction {
        is_after_mark: bool,
    },
    Declaration {
        depth: u32,
    },
}

impl TokenReader {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            buffer: Vec::new(),
            max_bytes,
            state: XmlState::Text,
            is_cut: false,
            is_spent: false,
        }
    }

    /// True if the token that was just handed out lost its end.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Eats from `input` up to the end of the next token.
    pub(super) fn next_token<'a>(&'a mut self, input: &mut &[u8]) -> Option<Token<'a>> {
        if self.is_spent {
            self.restart(self.state);
        }
        while let Some((&byte, rest)) = input.split_first() {
            if let XmlState::Text = self.state {
                let end = memchr(b'<', input);
                self.extend(&input[..end.unwrap_or(input.len())]);
                let Some(end) = end else {
                    *input = &[];
                    return None;
                };
                *input = &input[end + 1..];
                if self.buffer.trim_ascii().is_empty() {
                    self.restart(XmlState::Opened);
                    continue;
                }
                self.state = XmlState::Opened;
                self.is_spent = true;
                return Some(Token::Text(self.text()));
            }
            *input = rest;
            match self.step(byte) {
                XmlStep::Nothing => {}
                XmlStep::TagEnded => return Some(Token::Tag(self.hand_out())),
                XmlStep::CdataEnded => return Some(Token::Cdata(self.hand_out())),
            }
        }
        None
    }

    fn step(&mut self, byte: u8) -> XmlStep {
        match self.state {
            XmlState::Text => {}
            XmlState::Opened => self.decide(byte),
            XmlState::Tag { quote } => return self.tag(byte, quote),
            XmlState::Comment { dashes } => match byte {
                b'>' if dashes == 2 => self.restart(XmlState::Text),
                b'-' => {
                    self.state = XmlState::Comment {
                        dashes: (dashes + 1).min(2),
                    }
                }
                _ => self.state = XmlState::Comment { dashes: 0 },
            },
            XmlState::Cdata { brackets } => {
                if byte == b'>' && brackets == 2 {
                    let end = self.buffer.strip_suffix(b"]]").unwrap_or(&self.buffer).len();
                    self.buffer.truncate(end);
                    return XmlStep::CdataEnded;
                }
                self.extend(&[byte]);
                self.state = XmlState::Cdata {
                    brackets: if byte == b']' { (brackets + 1).min(2) } else { 0 },
                };
            }
            XmlState::Instruction { is_after_mark } => match byte {
                b'>' if is_after_mark => self.restart(XmlState::Text),
                _ => {
                    self.state = XmlState::Instruction {
                        is_after_mark: byte == b'?',
                    }
                }
            },
            XmlState::Declaration { depth } => self.declaration(byte, depth),
        }
        XmlStep::Nothing
    }

    /// Behind `<`: finds out what kind of markup this is.
    fn decide(&mut self, byte: u8) {
        const CDATA: &[u8] = b"![CDATA[";
        self.buffer.push(byte);
        match self.buffer.as_slice() {
            b"!" | b"!-" => {}
            b"!--" => self.restart(XmlState::Comment { dashes: 0 }),
            CDATA => self.restart(XmlState::Cdata { brackets: 0 }),
            start if CDATA.starts_with(start) => {}
            b"?" => self.restart(XmlState::Instruction { is_after_mark: false }),
            b"<" => self.buffer.clear(),
            [b'!', ..] => self.declaration(byte, 0),
            [b'/' | b'_' | b':' | b'a'..=b'z' | b'A'..=b'Z' | 0x80.., ..] => {
                self.state = XmlState::Tag { quote: None }
            }
            _ => {
                // A `<` that begins no markup is text.
                self.buffer.insert(0, b'<');
                self.state = XmlState::Text;
            }
        }
    }

    fn tag(&mut self, byte: u8, quote: Option<u8>) -> XmlStep {
        let quote = match (byte, quote) {
            (b'>', None) => return XmlStep::TagEnded,
            // Not allowed in a tag, not even quoted: the tag is broken, and a new one begins.
            (b'<', _) => {
                self.restart(XmlState::Opened);
                return XmlStep::Nothing;
            }
            (b'"' | b'\'', None) => Some(byte),
            (_, Some(open)) if open == byte => None,
            _ => quote,
        };
        self.extend(&[byte]);
        self.state = XmlState::Tag { quote };
        XmlStep::Nothing
    }

    fn declaration(&mut self, byte: u8, depth: u32) {
        match byte {
            b'>' if depth == 0 => self.restart(XmlState::Text),
            b'[' => {
                self.state = XmlState::Declaration {
                    depth: depth.saturating_add(1),
                }
            }
            b']' => {
                self.state = XmlState::Declaration {
                    depth: depth.saturating_sub(1),
                }
            }
            _ => self.state = XmlState::Declaration { depth },
        }
    }

    fn extend(&mut self, bytes: &[u8]) {
        self.is_cut |= !extend_up_to(&mut self.buffer, bytes, self.max_bytes);
    }

    fn hand_out(&mut self) -> Cow<'_, str> {
        self.is_spent = true;
        self.state = XmlState::Text;
        self.text()
    }

    fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(whole_characters(&self.buffer))
    }

    fn restart(&mut self, state: XmlState) {
        self.buffer.clear();
        self.buffer.shrink_to(64 * 1024);
        self.state = state;
        self.is_cut = false;
        self.is_spent = false;
    }
}

/// Effect of one byte of markup.
enum XmlStep {
    Nothing,
    TagEnded,
    CdataEnded,
}
