//! Output as a terminal would show it: colours, and of what is drawn again only the last state.
//!
//! Nothing of it acts here. A sequence that a terminal would obey colours text, moves the place of writing within the rows
//! at hand, or is left out; characters that turn text around or cannot be seen are shown by their number.

use std::collections::VecDeque;

use ahma_common::words::is_hidden;
use maud::{Markup, Render, html};

/// Columns of a row that are shown; the rest is counted.
const MAX_COLUMNS: usize = 1_000;

/// Rows above the newest one that may still be drawn again.
const OPEN_ROWS: usize = 100;

/// Rows that a page keeps, as its script does.
const SHOWN_ROWS: usize = 5_000;

/// Bytes that are printed at a time.
const PIECE_BYTES: usize = 4 << 10;

/// Parameters of a sequence that are read; longer ones are nonsense.
const MAX_PARAMETERS: usize = 64;

#[derive(Debug)]
pub(super) struct Terminal {
    rows: VecDeque<TerminalRow>,
    /// Place of writing.
    row: usize,
    column: usize,
    style: Style,
    /// Number of the line that is being printed.
    line: u64,
    state: Parsing,
    /// The beginning of a character that is not complete.
    partial: Vec<u8>,
}

/// A row of text.
#[derive(Debug)]
pub(super) struct TerminalRow {
    /// Number of the line that began it.
    pub(super) number: u64,
    cells: Vec<(char, Style)>,
    /// Characters beyond the last column.
    cut: usize,
    is_changed: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Style {
    /// 0 to 15.
    foreground: Option<u8>,
    background: Option<u8>,
    /// Of [`MARKS`].
    marks: u8,
}

/// Classes of text, and the parameters that switch them on and off.
const MARKS: [(&str, u16, u16); 6] = [
    ("bold", 1, 22),
    ("dim", 2, 22),
    ("italic", 3, 23),
    ("underline", 4, 24),
    ("reverse", 7, 27),
    ("strike", 9, 29),
];

#[derive(Debug)]
enum Parsing {
    Text,
    /// After an escape character.
    Escape,
    /// One more character belongs to it.
    Charset,
    Control(String),
    /// A text for the terminal itself, such as a title; until its end.
    Message,
    /// An escape character in it, which may begin the end.
    MessageEscape,
}

impl Terminal {
    /// An empty one whose first line has that number.
    pub(super) fn new(first_line: u64) -> Self {
        Self {
            rows: VecDeque::new(),
            row: 0,
            column: 0,
            style: Style::default(),
            line: first_line,
            state: Parsing::Text,
            partial: Vec::new(),
        }
    }

    pub(super) fn print(&mut self, bytes: &[u8]) {
        let joined = [std::mem::take(&mut self.partial).as_slice(), bytes].concat();
        let mut chunks = joined.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            chunk.valid().chars().for_each(|c| self.take(c));
            let is_last = chunks.peek().is_none();
            match chunk.invalid() {
                [] => {}
                // The rest may come with the next bytes.
                rest if is_last
                    && rest.len() < 4
                    && std::str::from_utf8(rest).is_err_and(|e| e.error_len().is_none()) =>
                {
                    self.partial = rest.to_vec();
                }
                _ => self.take(char::REPLACEMENT_CHARACTER),
            }
        }
    }

    /// All rows there are.
    pub(super) fn rows(&self) -> impl Iterator<Item = &TerminalRow> {
        self.rows.iter()
    }

    /// Rows that are other than when this was last asked. Those far above are let go.
    pub(super) fn changed_rows(&mut self) -> Vec<Markup> {
        let changed = self
            .rows
            .iter_mut()
            .filter_map(|row| std::mem::take(&mut row.is_changed).then(|| row.render()));
        let changed = changed.collect();
        while self.rows.len() > OPEN_ROWS && self.row > 0 {
            self.rows.pop_front();
            self.row -= 1;
        }
        changed
    }

    /// Prints, and gives the rows that are other than before. A few bytes can make a long row, so no more rows are kept than
    /// a page shows.
    pub(super) fn print_rows(&mut self, bytes: &[u8]) -> Vec<Markup> {
        let mut rows = VecDeque::new();
        for piece in bytes.chunks(PIECE_BYTES) {
            self.print(piece);
            rows.extend(self.changed_rows());
            rows.drain(..rows.len().saturating_sub(SHOWN_ROWS));
        }
        rows.into()
    }

    fn take(&mut self, c: char) {
        match (&mut self.state, c) {
            (Parsing::Text, '\u{1b}') => self.state = Parsing::Escape,
            (Parsing::Text, c) => self.put(c),
            (Parsing::Escape, '[') => self.state = Parsing::Control(String::new()),
            (Parsing::Escape, ']' | 'P' | 'X' | '^' | '_') => self.state = Parsing::Message,
            (Parsing::Escape, '(' | ')' | '*' | '+' | '#' | '%') => self.state = Parsing::Charset,
            (Parsing::Escape | Parsing::Charset, _) => self.state = Parsing::Text,
            (Parsing::Control(parameters), '\u{20}'..='\u{3f}') if parameters.len() < MAX_PARAMETERS => {
                parameters.push(c);
            }
            (Parsing::Control(parameters), c) => {
                let parameters = std::mem::take(parameters);
                self.state = Parsing::Text;
                match c {
                    '\u{40}'..='\u{7e}' => self.control(&parameters, c),
                    // Not one after all.
                    c => self.take(c),
                }
            }
            (Parsing::Message, '\u{7}') => self.state = Parsing::Text,
            (Parsing::Message, '\u{1b}') => self.state = Parsing::MessageEscape,
            // What never ends would swallow everything after it.
            (Parsing::Message, '\n') => {
                self.state = Parsing::Text;
                self.put(c);
            }
            (Parsing::Message, _) => {}
            (Parsing::MessageEscape, '\\') => self.state = Parsing::Text,
            (Parsing::MessageEscape, c) => {
                self.state = Parsing::Escape;
                self.take(c);
            }
        }
    }

    fn put(&mut self, c: char) {
        match c {
            '\n' => {
                self.current();
                self.line += 1;
                self.row += 1;
                self.column = 0;
            }
            '\r' => self.column = 0,
            '\u{8}' => self.column = self.column.saturating_sub(1),
            '\t' => self.column = (self.column / 8 + 1) * 8,
            '\u{7}' => {}
            c => {
                let (column, style) = (self.column, self.style);
                self.column += 1;
                let row = self.current();
                if column >= MAX_COLUMNS {
                    row.cut += 1;
                } else {
                    if row.cells.len() <= column {
                        row.cells.resize(column + 1, (' ', Style::default()));
                    }
                    row.cells[column] = (c, style);
                }
            }
        }
    }

    /// The row at the place of writing, which is about to change.
    fn current(&mut self) -> &mut TerminalRow {
        while self.rows.len() <= self.row {
            self.rows.push_back(TerminalRow {
                number: self.line,
                cells: Vec::new(),
                cut: 0,
                is_changed: true,
            });
        }
        let row = &mut self.rows[self.row];
        row.is_changed = true;
        row
    }

    fn control(&mut self, parameters: &str, c: char) {
        let numbers: Vec<u16> = parameters
            .split([';', ':'])
            .map(|number| number.parse().unwrap_or(0))
            .collect();
        let count = usize::from(numbers[0]);
        let steps = count.max(1);
        match c {
            'm' => self.style.apply(&numbers),
            'A' | 'F' => {
                self.row = self.row.saturating_sub(steps.min(OPEN_ROWS));
                if c == 'F' {
                    self.column = 0;
                }
            }
            'B' | 'E' => {
                let last = self.rows.len().saturating_sub(1);
                self.row = (self.row + steps).min(last.max(self.row));
                if c == 'E' {
                    self.column = 0;
                }
            }
            'C' => self.column = (self.column + steps).min(MAX_COLUMNS),
            'D' => self.column = self.column.saturating_sub(steps),
            'G' => self.column = (steps - 1).min(MAX_COLUMNS),
            'K' => {
                let column = self.column;
                let row = self.current();
                let blank = (' ', Style::default());
                let written = row.cells.len();
                match count {
                    0 => row.cells.truncate(column),
                    1 => row.cells[..(column + 1).min(written)].fill(blank),
                    _ => row.cells.clear(),
                }
                row.cut = 0;
            }
            // Below the place of writing. What was above has been printed, so it stays.
            'J' if count == 0 => {
                let column = self.column;
                self.current().cells.truncate(column);
                for row in self.rows.iter_mut().skip(self.row + 1) {
                    row.cells.clear();
                    row.is_changed = true;
                }
            }
            _ => {}
        }
    }
}

impl Style {
    fn apply(&mut self, numbers: &[u16]) {
        let mut numbers = numbers.iter().copied();
        while let Some(number) = numbers.next() {
            match number {
                0 => *self = Self::default(),
                30..=37 => self.foreground = Some((number - 30) as u8),
                90..=97 => self.foreground = Some((number - 82) as u8),
                39 => self.foreground = None,
                40..=47 => self.background = Some((number - 40) as u8),
                100..=107 => self.background = Some((number - 92) as u8),
                49 => self.background = None,
                38 => self.foreground = extended(&mut numbers).or(self.foreground),
                48 => self.background = extended(&mut numbers).or(self.background),
                number => {
                    for (mark, (_, on, off)) in MARKS.iter().enumerate() {
                        if number == *on {
                            self.marks |= 1 << mark;
                        } else if number == *off {
                            self.marks &= !(1 << mark);
                        }
                    }
                }
            }
        }
    }

    fn classes(self) -> String {
        let colour = |kind: &str, colour: Option<u8>| colour.map(|colour| format!("{kind}{colour}"));
        let marks = MARKS.iter().enumerate();
        let marks = marks
            .filter(|(mark, _)| self.marks & (1 << mark) != 0)
            .map(|(_, (name, ..))| (*name).to_owned());
        let classes: Vec<String> = colour("f", self.foreground)
            .into_iter()
            .chain(colour("b", self.background))
            .chain(marks)
            .collect();
        classes.join(" ")
    }
}

/// A colour of the larger palettes, as the nearest of sixteen.
fn extended(numbers: &mut impl Iterator<Item = u16>) -> Option<u8> {
    let (red, green, blue) = match numbers.next()? {
        5 => match numbers.next()? {
            colour @ 0..=15 => return Some(colour as u8),
            colour @ 16..=231 => {
                let part = |by: u16| (colour - 16) / by % 6 * 51;
                (part(36), part(6), part(1))
            }
            grey => {
                let grey = (grey.min(255) - 232) * 10 + 8;
                (grey, grey, grey)
            }
        },
        2 => (numbers.next()?, numbers.next()?, numbers.next()?),
        _ => return None,
    };
    let bright = red.max(green).max(blue) > 191;
    let is_on = |part: u16| u8::from(part > 95);
    let colour = is_on(red) | is_on(green) << 1 | is_on(blue) << 2;
    Some(match (colour, bright) {
        (0, _) if red > 47 => 8,
        (7, false) => 7,
        (0, _) => 0,
        (colour, true) => colour + 8,
        (colour, false) => colour,
    })
}

impl Render for TerminalRow {
    fn render(&self) -> Markup {
        html! {
            div id={ "L" (self.number) } data-n=(self.number) {
                @for run in self.cells.chunk_by(|one, next| one.1 == next.1) {
                    @let classes = run[0].1.classes();
                    @let text = visible(run.iter().map(|(c, _)| *c));
                    @if classes.is_empty() { (text) } @else { span class=(classes) { (text) } }
                }
                @if self.cut > 0 { span.cut { " … " (self.cut) " more characters" } }
            }
        }
    }
}

/// Text of which every character can be seen, and none turns the others around.
pub(super) fn visible(text: impl Iterator<Item = char>) -> Markup {
    let mut pieces: Vec<Markup> = Vec::new();
    let mut plain = String::new();
    for c in text {
        if is_hidden(c) {
            pieces.push(std::mem::take(&mut plain).render());
            pieces.push(html! { span.hidden-character { (format!("U+{:04X}", u32::from(c))) } });
        } else {
            plain.push(c);
        }
    }
    pieces.push(plain.render());
    html! { @for piece in &pieces { (piece) } }
}

#[cfg(test)]
#[path = "terminal_tests.rs"]
mod tests;
