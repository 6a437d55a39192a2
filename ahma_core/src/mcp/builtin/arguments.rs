//! Reads the arguments of a built-in tool, and collects everything that is wrong with them.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use crate::mtdf::nearest;

/// Arguments of one call. Take each by its name, then ask [`Arguments::finish`] whether all was well.
#[derive(Debug)]
pub(super) struct Arguments {
    given: Map<String, Value>,
    known: Vec<&'static str>,
    problems: Vec<String>,
}

impl Arguments {
    pub(super) fn new(given: Map<String, Value>) -> Self {
        Self {
            given,
            known: Vec::new(),
            problems: Vec::new(),
        }
    }

    pub(super) fn text(&mut self, name: &'static str) -> Option<String> {
        self.take(name, "a string", |value| match value {
            Value::String(text) => Some(text),
            _ => None,
        })
    }

    /// Empty if it is missing; then a problem is noted.
    pub(super) fn required_text(&mut self, name: &'static str) -> String {
        let missing = matches!(self.given.get(name), None | Some(Value::Null));
        if missing {
            self.problems.push(format!("{name}: is required"));
        }
        self.text(name).unwrap_or_default()
    }

    /// A list of at most so many strings. A single string counts as a list of one, and an empty list as left out: models often send them.
    pub(super) fn texts(&mut self, name: &'static str, most: usize) -> Option<Vec<String>> {
        let expected = format!("an array of at most {most} strings");
        let texts = self.take(name, &expected, |value| match value {
            Value::String(text) => Some(vec![text]),
            Value::Array(items) if items.len() <= most => items
                .into_iter()
                .map(|item| item.as_str().map(str::to_owned))
                .collect::<Option<Vec<_>>>(),
            _ => None,
        });
        texts.filter(|texts| !texts.is_empty())
    }

    pub(super) fn integer(&mut self, name: &'static str, range: RangeInclusive<u64>) -> Option<u64> {
        let expected = if *range.end() == u64::MAX {
            format!("an integer of at least {}", range.start())
        } else {
            format!("an integer from {} to {}", range.start(), range.end())
        };
        self.take(name, &expected, |value| {
            value.as_u64().filter(|number| range.contains(number))
        })
    }

    pub(super) fn flag(&mut self, name: &'static str) -> Option<bool> {
        self.take(name, "true or false", |value| value.as_bool())
    }

    pub(super) fn choice<T: Copy>(&mut self, name: &'static str, choices: &[(&str, T)]) -> Option<T> {
        let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
        self.take(name, &format!("one of {}", names.join(", ")), |value| {
            choices
                .iter()
                .find(|(name, _)| value == *name)
                .map(|(_, choice)| *choice)
        })
    }

    /// Notes something that only the tool itself can judge.
    pub(super) fn problem(&mut self, problem: String) {
        self.problems.push(problem);
    }

    /// Every mistake of the call, unknown names included.
    pub(super) fn finish(mut self) -> Result<(), Vec<String>> {
        for name in self.given.keys() {
            self.problems
                .push(match nearest(name, self.known.iter().copied()).first() {
                    Some(nearest) => format!("{name}: is not known; did you mean {nearest}?"),
                    None => format!("{name}: is not known; this tool takes {}", self.known.join(", ")),
                });
        }
        if self.problems.is_empty() {
            Ok(())
        } else {
            Err(self.problems)
        }
    }

    fn take<T>(
        &mut self,
        name: &'static str,
        expected: &str,
        read: impl FnOnce(Value) -> Option<T>,
    ) -> Option<T> {
        self.known.push(name);
        let value = self.given.remove(name).filter(|value| !value.is_null())?;
        let shown = shorten(&value);
        let read = read(value);
        if read.is_none() {
            self.problems
                .push(format!("{name}: expected {expected}, found {shown}"));
        }
        read
    }
}

fn shorten(value: &Value) -> String {
    const LONGEST: usize = 60;
    let mut text = value.to_string();
    if let Some((cut, _)) = text.char_indices().nth(LONGEST) {
        text.truncate(cut);
        text.push('…');
    }
    text
}

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod tests;
