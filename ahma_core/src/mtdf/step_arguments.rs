//! `{$name}` in the arguments of a step: the arguments of its sequence.
//!
//! Other braces mean nothing here, because the text of a step may be a script.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// The way in which a text refers to an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Embedding {
    /// As it is.
    Plain,
    /// As one word of a shell, whatever it holds.
    ShellWord,
}

/// The names of the arguments that a value refers to.
pub(crate) fn references(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => {
            let mut names = Vec::new();
            let mut rest = text.as_str();
            while let Some((_, name, behind)) = next_reference(rest) {
                names.push(name);
                rest = behind;
            }
            names
        }
        Value::Array(items) => items.iter().flat_map(references).collect(),
        Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// The arguments of a step for the arguments of one call. What refers to nothing but an argument that was not given is
/// left out.
pub(crate) fn bind(
    arguments: &Map<String, Value>,
    given: &Map<String, Value>,
    embedding: Embedding,
) -> Map<String, Value> {
    let bound = arguments.iter().filter_map(|(name, value)| {
        let value = match value {
            Value::Array(items) => {
                Value::Array(items.iter().flat_map(|item| bind_item(item, given)).collect())
            }
            value => bind_value(value, given, embedding)?,
        };
        Some((name.clone(), value))
    });
    bound.collect()
}

/// An item that is a list of its own is put in item by item.
fn bind_item(item: &Value, given: &Map<String, Value>) -> Vec<Value> {
    match bind_value(item, given, Embedding::Plain) {
        None => Vec::new(),
        Some(Value::Array(items)) if !item.is_array() => items,
        Some(value) => vec![value],
    }
}

fn bind_value(value: &Value, given: &Map<String, Value>, embedding: Embedding) -> Option<Value> {
    let Value::String(text) = value else {
        return Some(value.clone());
    };
    if let Some(("", name, "")) = next_reference(text)
        && embedding == Embedding::Plain
    {
        return given.get(name).cloned();
    }
    let mut bound = String::new();
    let mut rest = text.as_str();
    while let Some((before, name, behind)) = next_reference(rest) {
        bound.push_str(before);
        bound.push_str(&embedded(given.get(name), embedding));
        rest = behind;
    }
    bound.push_str(rest);
    Some(Value::String(bound))
}

fn embedded(value: Option<&Value>, embedding: Embedding) -> String {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let values: Vec<String> = match value {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(items)) => items.iter().map(text).collect(),
        Some(value) => vec![text(value)],
    };
    let words = values.iter().map(|word| match embedding {
        Embedding::Plain => Cow::Borrowed(word.as_str()),
        // A NUL, which cannot be quoted, is refused with the script.
        Embedding::ShellWord => shlex::try_quote(word).unwrap_or(Cow::Borrowed(word)),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Text before a reference, its name, and the text behind it.
fn next_reference(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    while let Some(found) = text[from..].find("{$") {
        let start = from + found;
        let inside = &text[start + 2..];
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
        let length = inside.find(|letter| !is_name(letter)).unwrap_or(inside.len());
        if length > 0 && inside[length..].starts_with('}') {
            return Some((&text[..start], &inside[..length], &inside[length + 1..]));
        }
        from = start + 2;
    }
    None
}

#[cfg(test)]
#[path = "step_arguments_tests.rs"]
mod tests;
