//! Lines of an output: selection and text.

use serde::Serialize;

use crate::{
    call::NamedArguments,
    operation::{LossCause, OutputGap, OutputPage, OutputQuery, PageStart},
};

/// More would not fit into an answer anyway.
const MAX_LINES: u64 = 10_000;
const DEFAULT_LINES: u64 = 1_000;
const FIRST_LINE: u64 = 1;

/// Lines shown when nothing is chosen: the end is where the error is.
const DEFAULT_TAIL: u64 = 100;

/// The arguments that choose lines. A default value counts as left out: many models send all arguments.
#[derive(Debug)]
pub(super) struct LineArguments {
    tail: Option<u64>,
    from_line: Option<u64>,
    from_byte: Option<u64>,
    max_lines: Option<u64>,
    grep: Option<String>,
    context: Option<u64>,
    /// The beginning was asked for explicitly.
    from_start: bool,
    /// With escape sequences and redraws, not as a terminal would finally show them.
    pub(super) raw: bool,
}

/// Facts about the lines of an answer.
#[derive(Debug, Serialize)]
pub(super) struct LinesReport {
    /// The number of the first line shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_line: Option<u64>,
    /// Number of lines shown.
    lines: u64,
    /// Next `from_line`.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_line: Option<u64>,
    /// Next `from_byte`, inside a line that is longer than an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_byte: Option<u64>,
    /// Number of lines that match `grep`.
    #[serde(skip_serializing_if = "Option::is_none")]
    matches: Option<u64>,
    /// The last line that `grep` looked at, if it took too long to go on to the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    searched_to: Option<u64>,
    /// Bytes at the end of very long lines that `grep` did not look at.
    #[serde(skip_serializing_if = "Option::is_none")]
    unsearched_bytes: Option<u64>,
    total_lines: u64,
    total_bytes: u64,
    /// Bytes that were printed and cannot be read any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_bytes: Option<u64>,
    /// The first and the last line that they are missing from.
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_lines: Option<[u64; 2]>,
    #[serde(skip)]
    gap: Option<OutputGap>,
}

const CONTRADICTIONS: &[(&str, &str)] = &[
    ("tail", "from_line"),
    ("tail", "from_byte"),
    ("tail", "max_lines"),
    ("tail", "grep"),
    ("from_line", "from_byte"),
    ("grep", "from_byte"),
    ("grep", "raw"),
];

impl LineArguments {
    pub(super) fn take(arguments: &mut NamedArguments) -> Self {
        let from_line = arguments.integer("from_line", FIRST_LINE..=u64::MAX);
        let from_byte = arguments.integer("from_byte", 0..=u64::MAX);
        let taken = Self {
            from_start: from_line == Some(FIRST_LINE) || from_byte == Some(0),
            raw: arguments.flag("raw").unwrap_or(false),
            tail: arguments.integer("tail", 1..=MAX_LINES),
            from_line: from_line.filter(|line| *line != FIRST_LINE),
            from_byte: from_byte.filter(|byte| *byte != 0),
            max_lines: arguments
                .integer("max_lines", 1..=MAX_LINES)
                .filter(|lines| *lines != DEFAULT_LINES),
            grep: arguments.text("grep").filter(|pattern| !pattern.is_empty()),
            context: arguments
                .integer("context", 0..=OutputQuery::MAX_CONTEXT as u64)
                .filter(|lines| *lines != 0),
        };
        let given: Vec<_> = taken.given().collect();
        for (one, other) in CONTRADICTIONS {
            if given.contains(one) && given.contains(other) {
                arguments.problem(one, format!("cannot be combined with `{other}`"));
            }
        }
        if taken.context.is_some() && taken.grep.is_none() {
            arguments.problem("context", "has a meaning only with `grep`");
        }
        taken
    }

    /// The names of those that were given.
    pub(super) fn given(&self) -> impl Iterator<Item = &'static str> {
        [
            ("tail", self.tail.is_some()),
            ("from_line", self.from_line.is_some()),
            ("from_byte", self.from_byte.is_some()),
            ("max_lines", self.max_lines.is_some()),
            ("grep", self.grep.is_some()),
            ("context", self.context.is_some()),
            ("raw", self.raw),
        ]
        .into_iter()
        .filter_map(|(name, is_given)| is_given.then_some(name))
    }

    pub(super) fn query(self) -> OutputQuery {
        match (self.grep, self.tail) {
            (Some(pattern), _) => OutputQuery::Grep {
                pattern,
                context: usize::try_from(self.context.unwrap_or(0)).unwrap_or(usize::MAX),
                from_line: self.from_line.unwrap_or(FIRST_LINE),
                max_lines: self.max_lines.unwrap_or(DEFAULT_LINES),
            },
            (None, Some(lines)) => OutputQuery::Tail { lines },
            (None, None)
                if !self.from_start
                    && self.from_line.is_none()
                    && self.from_byte.is_none()
                    && self.max_lines.is_none() =>
            {
                OutputQuery::Tail { lines: DEFAULT_TAIL }
            }
            (None, None) => OutputQuery::Range {
                from: self.from_byte.map_or(
                    PageStart::Line(self.from_line.unwrap_or(FIRST_LINE)),
                    PageStart::Byte,
                ),
                max_lines: self.max_lines.unwrap_or(DEFAULT_LINES),
            },
        }
    }
}

impl LinesReport {
    pub(super) fn of(page: &OutputPage) -> Self {
        let (next_line, next_byte) = match page.next {
            Some(PageStart::Line(line)) => (Some(line), None),
            Some(PageStart::Byte(byte)) => (None, Some(byte)),
            None => (None, None),
        };
        Self {
            first_line: page.first_line,
            lines: page.lines,
            next_line,
            next_byte,
            matches: page.matches,
            searched_to: page.searched_to,
            unsearched_bytes: Some(page.unsearched_bytes).filter(|bytes| *bytes > 0),
            total_lines: page.total_lines,
            total_bytes: page.total_bytes,
            lost_bytes: page.gap.as_ref().map(|gap| gap.bytes),
            lost_lines: page.gap.as_ref().map(|gap| [gap.first_line, gap.last_line]),
            gap: page.gap.clone(),
        }
    }

    /// The numbers of the lines, and the argument that reads on.
    pub(super) fn place(&self) -> String {
        let mut place = match (self.first_line, self.matches) {
            (_, Some(1)) => format!("1 line of {} matches", self.total_lines),
            (_, Some(matches)) => format!("{matches} lines of {} match", self.total_lines),
            (Some(first), None) if self.lines <= 1 => format!("line {first} of {}", self.total_lines),
            (Some(first), None) => {
                let last = first + self.lines - 1;
                format!("lines {first} to {last} of {}", self.total_lines)
            }
            (None, None) => format!("no lines; there are {}", self.total_lines),
        };
        if let Some(last) = self.searched_to {
            place.push_str(&format!(" up to line {last}, where the search took too long"));
        }
        if let Some(bytes) = self.unsearched_bytes {
            place.push_str(&format!(
                "; {bytes} bytes at the end of very long lines were not searched"
            ));
        }
        if let Some(gap) = &self.gap {
            place.push_str(&missing(gap));
        }
        match (self.next_line, self.next_byte) {
            (Some(line), _) => format!("{place}; go on with from_line {line}"),
            (None, Some(byte)) => format!("{place}; go on with from_byte {byte}"),
            (None, None) => place,
        }
    }
}

fn missing(gap: &OutputGap) -> String {
    let OutputGap {
        bytes,
        first_line,
        last_line,
        cause,
    } = gap;
    let place = if first_line == last_line {
        format!("of line {first_line}")
    } else {
        format!("in lines {first_line} to {last_line}")
    };
    match cause {
        LossCause::Quota => format!("; {bytes} bytes {place} were over the quota and are not kept"),
        LossCause::Storage(why) => format!("; {bytes} bytes {place} could not be stored: {why}"),
    }
}

#[cfg(test)]
#[path = "output_lines_tests.rs"]
mod tests;
