//! Lines as a person at a terminal would see them one after another.
//!
//! A line ends at `\n`, `\r\n`, a bare `\r`, or an escape sequence that erases the line or moves to another one. All other
//! escape sequences and control characters are dropped, backspaces are obeyed. Blank lines are not frames.

use std::borrow::Cow;

use memchr::memchr;

/// A string sequence (window title and the like) longer than this is taken for a stray escape, not for one without an end.
const MAX_CONTROL_STRING_BYTES: u16 = 4096;

/// Cuts bytes into lines. Holds at most one line of at most `max_bytes`.
#[derive(Debug)]
pub(crate) struct LineReader {
    line: Vec<u8>,
    max_bytes: usize,
    /// The line was longer than `max_bytes`; the rest is skipped.
    is_cut: bool,
    has_cut: bool,
    /// The line was handed out; it is cleared by the next call.
    is_spent: bool,
    escape: Escape,
}

/// Position of the last byte in an escape sequence (ECMA-48 names).
#[derive(Debug, Clone, Copy)]
enum Escape {
    Outside,
    Introduced,
    /// `ESC (` and its like: one more byte.
    Designating,
    /// `ESC [`, with its first number.
    ControlSequence {
        first: u16,
        is_first: bool,
    },
    /// `ESC ]`, `ESC P` and others, up to BEL or `ESC \`.
    ControlString {
        seen_bytes: u16,
    },
    /// An ESC inside of one, which may begin its end.
    ControlStringEnding,
}

/// Effect of one byte on the line.
enum LineStep {
    Nothing,
    LineEnded,
    /// The byte is not part of the sequence after all; it is looked at again outside of it.
    Again,
}

impl LineReader {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self {
            line: Vec::new(),
            max_bytes,
            is_cut: false,
            has_cut: false,
            is_spent: false,
            escape: Escape::Outside,
        }
    }

    /// True if the end of any line was skipped.
    pub(crate) fn has_cut(&self) -> bool {
        self.has_cut
    }

    /// Eats from `input` up to the end of the next line that is not blank.
    pub(crate) fn next_line<'a>(&'a mut self, input: &mut &[u8]) -> Option<Cow<'a, str>> {
        self.clear_if_spent();
        while let Some(&byte) = input.first() {
            if let Escape::Outside = self.escape {
                let plain = input
                    .iter()
                    .position(|&byte| is_control(byte))
                    .unwrap_or(input.len());
                if plain > 0 {
                    self.is_cut |= !extend_up_to(&mut self.line, &input[..plain], self.max_bytes);
                    self.has_cut |= self.is_cut;
                    *input = &input[plain..];
                    continue;
                }
            }
            match self.step(byte) {
                LineStep::Again => continue,
                LineStep::Nothing => *input = &input[1..],
                LineStep::LineEnded => {
                    *input = &input[1..];
                    self.is_spent = true;
                    if !is_blank(&self.line) {
                        return Some(self.text());
                    }
                    self.clear_if_spent();
                }
            }
        }
        None
    }

    /// Number of bytes of a line that are held.
    pub(crate) fn held_bytes(&self) -> usize {
        self.line.len()
    }

    /// True if there is a line without its end that is not blank. Called after every chunk, so it looks no further than to the
    /// first character that is not blank.
    pub(crate) fn has_unfinished(&self) -> bool {
        !self.is_spent && !is_blank(&self.line)
    }

    /// The line so far, without its end, unless it is blank.
    pub(crate) fn unfinished(&self) -> Option<Cow<'_, str>> {
        self.has_unfinished()
            .then(|| String::from_utf8_lossy(whole_characters(&self.line)))
    }

    /// The last line, if the output ended in the middle of it.
    pub(crate) fn finish(&mut self) -> Option<Cow<'_, str>> {
        self.clear_if_spent();
        self.is_spent = true;
        (!is_blank(&self.line)).then(|| self.text())
    }

    fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(if self.is_cut {
            whole_characters(&self.line)
        } else {
            &self.line
        })
    }

    fn clear_if_spent(&mut self) {
        if self.is_spent {
            self.line.clear();
            // One huge line must not hold its memory for the rest of the run.
            self.line.shrink_to(64 * 1024);
            self.is_cut = false;
            self.is_spent = false;
        }
    }

    fn step(&mut self, byte: u8) -> LineStep {
        match self.escape {
            Escape::Outside => self.control(byte),
            // The end of a line ends every sequence, so that a broken one cannot swallow what follows.
            _ if matches!(byte, b'\n' | b'\r') => self.leave(LineStep::Again),
            Escape::Introduced => {
                self.escape = match byte {
                    b'[' => Escape::ControlSequence {
                        first: 0,
                        is_first: true,
                    },
                    b']' | b'P' | b'X' | b'^' | b'_' => Escape::ControlString { seen_bytes: 0 },
                    b' '..=b'/' => Escape::Designating,
                    0x1b => Escape::Introduced,
                    _ => Escape::Outside,
                };
                LineStep::Nothing
            }
            Escape::Designating => self.leave(LineStep::Nothing),
            Escape::ControlSequence { first, is_first } => match byte {
                b'0'..=b'9' if is_first => {
                    let first = first.saturating_mul(10).saturating_add(u16::from(byte - b'0'));
                    self.continue_with(Escape::ControlSequence { first, is_first })
                }
                b' '..=b'?' => self.continue_with(Escape::ControlSequence {
                    first,
                    is_first: false,
                }),
                b'@'..=b'~' => self.leave(if leaves_the_line(byte, first) {
                    LineStep::LineEnded
                } else {
                    LineStep::Nothing
                }),
                _ => self.leave(LineStep::Again),
            },
            Escape::ControlString { seen_bytes } => match byte {
                0x07 => self.leave(LineStep::Nothing),
                0x1b => self.continue_with(Escape::ControlStringEnding),
                _ if seen_bytes == MAX_CONTROL_STRING_BYTES => self.leave(LineStep::Again),
                _ => self.continue_with(Escape::ControlString {
                    seen_bytes: seen_bytes + 1,
                }),
            },
            Escape::ControlStringEnding if byte == b'\\' => self.leave(LineStep::Nothing),
            Escape::ControlStringEnding => {
                self.escape = Escape::Introduced;
                LineStep::Again
            }
        }
    }

    fn control(&mut self, byte: u8) -> LineStep {
        match byte {
            b'\n' | b'\r' => return LineStep::LineEnded,
            0x1b => self.escape = Escape::Introduced,
            0x08 if !self.is_cut => while self.line.pop().is_some_and(|popped| popped & 0xC0 == 0x80) {},
            _ => {}
        }
        LineStep::Nothing
    }

    fn leave(&mut self, step: LineStep) -> LineStep {
        self.escape = Escape::Outside;
        step
    }

    fn continue_with(&mut self, escape: Escape) -> LineStep {
        self.escape = escape;
        LineStep::Nothing
    }
}

/// True if a control sequence erases the whole line (`2K`) or moves the cursor away from the end of the text.
/// `K` alone erases after the cursor; compilers print it inside coloured lines.
fn leaves_the_line(final_byte: u8, first: u16) -> bool {
    match final_byte {
        b'K' => first == 2,
        b'G' => first <= 1,
        b'A' | b'B' | b'E' | b'F' | b'H' | b'f' | b'J' => true,
        _ => false,
    }
}

fn is_control(byte: u8) -> bool {
    (byte < b' ' && byte != b'\t') || byte == 0x7f
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| matches!(byte, b' ' | b'\t'))
}

/// Text as a terminal would show it in the end, without escape sequences and redrawn states: of a progress bar only the last
/// one is left. Line ends stay.
pub fn displayed(text: &str) -> Cow<'_, str> {
    if !text.contains(|c: char| c.is_control() && c != '\n' && c != '\t') {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        shown.push_str(&last_state(line));
        shown.push_str(end);
    }
    Cow::Owned(shown)
}

fn last_state(line: &str) -> String {
    let mut reader = LineReader::new(line.len());
    let mut input = line.as_bytes();
    let mut last = String::new();
    while let Some(state) = reader.next_line(&mut input) {
        last = state.into_owned();
    }
    reader.finish().map_or(last, Cow::into_owned)
}

/// Only this much of the end of a chunk is looked at, so the cost does not depend on how much a tool prints.
const WINDOW_BYTES: usize = 8 * 1024;

/// Limit on a line shown as a status.
const MAX_STATUS_BYTES: usize = 1024;

/// Remembers the newest line that is not blank. Holds a few kilobytes, whatever it is fed.
#[derive(Debug)]
pub struct LineTracker {
    reader: LineReader,
    newest_finished: Option<String>,
}

impl LineTracker {
    pub fn new() -> Self {
        Self {
            reader: LineReader::new(MAX_STATUS_BYTES),
            newest_finished: None,
        }
    }

    pub fn feed(&mut self, bytes: &[u8]) {
        let mut input = bytes;
        if bytes.len() > WINDOW_BYTES {
            // What stands before the window is older than what stands in it. Starting behind a line end keeps a
            // line or an escape sequence from being seen by half; without one, it is all one line.
            let window = &bytes[bytes.len() - WINDOW_BYTES..];
            if let Some(line_end) = memchr(b'\n', window) {
                self.reader = LineReader::new(MAX_STATUS_BYTES);
                input = &window[line_end + 1..];
            }
        }
        while let Some(line) = self.reader.next_line(&mut input) {
            self.newest_finished = Some(line.trim_end().to_owned());
        }
    }

    /// The newest line: the one being written if there is one, else the last that ended.
    pub fn newest(&self) -> Option<String> {
        match self.reader.unfinished() {
            Some(line) => Some(line.trim_end().to_owned()),
            None => self.newest_finished.clone(),
        }
    }
}

impl Default for LineTracker {
    fn default() -> Self {
        Self::new()
    }
}

/// Drops an unfinished character at the end, left there by a cut or by bytes that are still to come.
pub(crate) fn whole_characters(bytes: &[u8]) -> &[u8] {
    let start_of_last = bytes.iter().rposition(|byte| byte & 0xC0 != 0x80).unwrap_or(0);
    let wanted = match bytes.get(start_of_last) {
        Some(0xC0..=0xDF) => 2,
        Some(0xE0..=0xEF) => 3,
        Some(0xF0..=0xF7) => 4,
        _ => 1,
    };
    if bytes.len() - start_of_last < wanted {
        &bytes[..start_of_last]
    } else {
        bytes
    }
}

/// Adds as many bytes as the limit allows; false when some had to be left out.
pub(super) fn extend_up_to(buffer: &mut Vec<u8>, bytes: &[u8], max_bytes: usize) -> bool {
    let room = max_bytes.saturating_sub(buffer.len());
    buffer.extend_from_slice(&bytes[..bytes.len().min(room)]);
    bytes.len() <= room
}
