//! Arguments of a built-in tool, read one by one by their names.
//!
//! A value that can only mean one thing is taken, as for tools from files: `"3"` for 3, `"true"` for true, one string for a
//! list of one, `from-line` for `from_line`. Everything else is refused, all of it at once.

use std::ops::RangeInclusive;

use ahma_common::words::shorten;
use serde_json::{Map, Value};

use crate::mtdf::{ArgumentProblem, Range, Scalar, ValueType, plain_name, suggestion};

/// Characters shown of a value that was refused.
const MAX_SHOWN_CHARS: usize = 60;

const TEXT: Scalar = Scalar::String { choices: Vec::new() };

/// Arguments of one call. Take each by its name, then let [`NamedArguments::finish`] judge what is left.
#[derive(Debug)]
pub(crate) struct NamedArguments {
    /// By their plain names.
    given: Map<String, Value>,
    known: Vec<&'static str>,
    /// Arguments that the caller has taken out before.
    meta_names: &'static [&'static str],
    problems: Vec<ArgumentProblem>,
}

impl NamedArguments {
    /// `null` counts as not given: many clients send it for what they leave out.
    pub(crate) fn new(given: Map<String, Value>) -> Self {
        let mut arguments = Self {
            given: Map::new(),
            known: Vec::new(),
            meta_names: &[],
            problems: Vec::new(),
        };
        for (name, value) in given.into_iter().filter(|(_, value)| !value.is_null()) {
            let plain = plain_name(&name);
            if arguments.given.contains_key(&plain) {
                arguments.problem(&plain, format!("is given twice, also as `{name}`"));
            }
            arguments.given.insert(plain, value);
        }
        arguments
    }

    /// Names arguments that the caller has taken out before, so that one of them can be suggested.
    #[must_use]
    pub(crate) fn besides(mut self, meta_names: &'static [&'static str]) -> Self {
        self.meta_names = meta_names;
        self
    }

    /// Takes an argument that is not given under its own name by the first of its other names.
    pub(crate) fn aliases(&mut self, name: &'static str, others: &[&str]) {
        if self.given.contains_key(name) {
            return;
        }
        let value = others.iter().find_map(|other| self.given.remove(*other));
        if let Some(value) = value {
            self.given.insert(name.to_owned(), value);
        }
    }

    pub(crate) fn text(&mut self, name: &'static str) -> Option<String> {
        self.take(name, "a string", |value| match value {
            Value::String(text) => Some(text),
            other => ValueType::Scalar(TEXT).coerce(&other).as_str().map(str::to_owned),
        })
    }

    /// Empty if it is missing, which is then a problem.
    pub(crate) fn required_text(&mut self, name: &'static str) -> String {
        if !self.given.contains_key(name) {
            self.problem(name, "is required");
        }
        self.text(name).unwrap_or_default()
    }

    /// At most so many strings. One string counts as a list of one, and an empty list as left out: models often send them.
    pub(crate) fn texts(&mut self, name: &'static str, most: usize) -> Option<Vec<String>> {
        let expected = format!("an array of at most {most} strings");
        let texts = self.take(name, &expected, |value| {
            let texts = ValueType::Array(TEXT).coerce(&value).into_owned();
            let texts: Vec<String> = serde_json::from_value(texts).ok()?;
            (texts.len() <= most).then_some(texts)
        });
        texts.filter(|texts| !texts.is_empty())
    }

    pub(crate) fn integer(&mut self, name: &'static str, range: RangeInclusive<u64>) -> Option<u64> {
        let expected = match *range.end() {
            u64::MAX => format!("an integer of at least {}", range.start()),
            end => format!("an integer from {} to {end}", range.start()),
        };
        self.take(name, &expected, |value| {
            let integer = ValueType::Scalar(Scalar::Integer(Range::default()));
            let number = integer.coerce(&value).as_u64();
            number.filter(|number| range.contains(number))
        })
    }

    pub(crate) fn flag(&mut self, name: &'static str) -> Option<bool> {
        self.take(name, "true or false", |value| {
            ValueType::Boolean.coerce(&value).as_bool()
        })
    }

    pub(crate) fn choice<T: Copy>(&mut self, name: &'static str, choices: &[(&str, T)]) -> Option<T> {
        let names: Vec<_> = choices.iter().map(|(name, _)| format!("`{name}`")).collect();
        self.take(name, &format!("one of {}", names.join(", ")), |value| {
            let chosen = choices.iter().find(|(name, _)| value == *name);
            chosen.map(|(_, choice)| *choice)
        })
    }

    pub(crate) fn take<T>(
        &mut self,
        name: &'static str,
        expected: &str,
        read: impl FnOnce(Value) -> Option<T>,
    ) -> Option<T> {
        self.known.push(name);
        let value = self.given.remove(name)?;
        let shown = shorten(value.to_string(), MAX_SHOWN_CHARS);
        let read = read(value);
        if read.is_none() {
            self.problem(name, format!("must be {expected}, not {shown}"));
        }
        read
    }

    /// Adds what only the tool itself can judge.
    pub(crate) fn problem(&mut self, name: &str, message: impl Into<String>) {
        self.problems.push(ArgumentProblem::new(name, message));
    }

    /// Every mistake of the call, unknown names included.
    pub(crate) fn finish(mut self) -> Result<(), Vec<ArgumentProblem>> {
        self.known.extend(self.meta_names);
        let unknown: Vec<String> = self.given.keys().cloned().collect();
        for name in unknown {
            let message = match suggestion(&name, &self.known) {
                Some(meant) => format!("is not an argument of this tool; did you mean `{meant}`?"),
                None => "is not an argument of this tool".into(),
            };
            self.problem(&name, message);
        }
        if self.problems.is_empty() {
            Ok(())
        } else {
            Err(self.problems)
        }
    }
}

#[cfg(test)]
#[path = "named_arguments_tests.rs"]
mod tests;
