//! The part of an output that is worth showing: the lines that sum it up, and those that no rule has made anything of.

use std::collections::VecDeque;

use ahma_common::words::shorten;

use super::rules::LineUse;

/// Summary lines kept: the last ones, which sum up the others.
const MAX_SUMMARY_LINES: usize = 8;

/// Of the lines that are neither known nor noise, this much of the beginning and of the end is kept.
const HEAD_BYTES: usize = 2_000;
const TAIL_BYTES: usize = 8_000;

/// Longer lines are cut.
const MAX_LINE_CHARS: usize = 1_000;

/// Lines worth showing. Holds a bounded number of bytes, whatever it is given.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Digest {
    summary: VecDeque<String>,
    plain: PlainLines,
}

/// Lines that no rule knows: the first and the last of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct PlainLines {
    head: Vec<String>,
    head_bytes: usize,
    tail: VecDeque<String>,
    tail_bytes: usize,
    skipped: usize,
}

impl Digest {
    /// The lines that sum up the run, in order.
    pub fn summary(&self) -> impl Iterator<Item = &str> {
        self.summary.iter().map(String::as_str)
    }

    /// The lines that no rule knows, in at most about `max_bytes`, most of them from the end.
    pub fn explanation(&self, max_bytes: usize) -> String {
        self.plain.text(max_bytes)
    }

    pub(super) fn add_line(&mut self, line: &str, line_use: LineUse) {
        match line_use {
            LineUse::Plain => self.plain.push(line),
            LineUse::Taken => {}
            LineUse::TakenWithPrevious => self.plain.pop(),
        }
    }

    pub(super) fn add_summary(&mut self, line: String) {
        if self.summary.back() == Some(&line) {
            return;
        }
        if self.summary.len() == MAX_SUMMARY_LINES {
            self.summary.pop_front();
        }
        self.summary.push_back(line);
    }

    /// Adds lines that turned out not to be what the rules read.
    pub(super) fn add_plain(&mut self, lines: &PlainLines) {
        for line in lines.head.iter().chain(&lines.tail) {
            self.plain.push(line);
        }
        self.plain.skipped += lines.skipped;
    }
}

impl PlainLines {
    pub(super) fn push(&mut self, line: &str) {
        let line = shorten(line.trim_end().to_owned(), MAX_LINE_CHARS);
        if self.tail.is_empty() && self.head_bytes + line.len() <= HEAD_BYTES {
            self.head_bytes += line.len() + 1;
            self.head.push(line);
            return;
        }
        self.tail_bytes += line.len() + 1;
        self.tail.push_back(line);
        while self.tail_bytes > TAIL_BYTES
            && let Some(oldest) = self.tail.pop_front()
        {
            self.tail_bytes -= oldest.len() + 1;
            self.skipped += 1;
        }
    }

    fn pop(&mut self) {
        if let Some(line) = self.tail.pop_back() {
            self.tail_bytes -= line.len() + 1;
        } else if let Some(line) = self.head.pop() {
            self.head_bytes -= line.len() + 1;
        }
    }

    fn text(&self, max_bytes: usize) -> String {
        let lines: Vec<&str> = self.head.iter().chain(&self.tail).map(String::as_str).collect();
        let bytes: usize = lines.iter().map(|line| line.len() + 1).sum();
        if bytes <= max_bytes && self.skipped == 0 {
            return lines.join("\n");
        }
        let head = fitting(lines.iter(), max_bytes / 4);
        let tail = fitting(lines[head..].iter().rev(), max_bytes - max_bytes / 4);
        let left_out = lines.len() - head - tail + self.skipped;
        let mut shown = lines[..head].to_vec();
        let marker = format!("[... {left_out} lines left out ...]");
        if left_out > 0 {
            shown.push(&marker);
        }
        shown.extend(&lines[lines.len() - tail..]);
        shown.join("\n")
    }
}

/// Number of lines that fit.
fn fitting<'a>(lines: impl Iterator<Item = &'a &'a str>, max_bytes: usize) -> usize {
    let mut room = max_bytes;
    lines
        .take_while(|line| {
            let fits = line.len() < room;
            room = room.saturating_sub(line.len() + 1);
            fits
        })
        .count()
}

#[cfg(test)]
#[path = "digest_tests.rs"]
mod tests;
