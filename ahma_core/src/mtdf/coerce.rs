//! Values that a call gives in another form than their type has.
//!
//! Taken where they can only mean one thing: `"x"` for `["x"]` and back, `"true"` for `true`, `"3"` for `3`, `3` for
//! `"3"`. Everything else stays as it is, for [`ValueType::objections`] to judge.

use std::borrow::Cow;

use serde_json::{Number, Value};

use super::value::{Scalar, ValueType};

impl ValueType {
    /// The value in the form of this type if it can only mean one thing, otherwise as it was given.
    pub(crate) fn coerce<'a>(&self, value: &'a Value) -> Cow<'a, Value> {
        if self.objections(value).is_empty() {
            return Cow::Borrowed(value);
        }
        let coerced = match self {
            Self::Boolean => boolean(only_element(value)),
            Self::Scalar(scalar) => Some(scalar.coerce(only_element(value), Booleans::Text)),
            Self::Array(scalar) => elements(value).map(|elements| {
                elements
                    .iter()
                    .map(|element| scalar.coerce(element, Booleans::Refused))
                    .collect()
            }),
        };
        coerced.map_or(Cow::Borrowed(value), Cow::Owned)
    }
}

/// Treatment of a boolean where a string is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Booleans {
    Text,
    /// In a list it rather means that everything is wanted: `"tests": true`.
    Refused,
}

impl Scalar {
    fn coerce(&self, value: &Value, booleans: Booleans) -> Value {
        let coerced = match (self, value) {
            (Self::String { .. } | Self::Path, Value::Number(number)) => {
                Some(Value::String(number.to_string()))
            }
            (Self::String { .. }, Value::Bool(set)) if booleans == Booleans::Text => {
                Some(Value::String(set.to_string()))
            }
            (Self::Integer(_) | Self::Number(_), Value::String(text)) => {
                text.trim().parse::<Number>().ok().map(Value::Number)
            }
            _ => None,
        };
        coerced.unwrap_or_else(|| value.clone())
    }
}

fn boolean(value: &Value) -> Option<Value> {
    match value {
        Value::String(text) => [true, false]
            .into_iter()
            .find(|set| text.trim().eq_ignore_ascii_case(&set.to_string()))
            .map(Value::Bool),
        Value::Bool(_) => Some(value.clone()),
        _ => None,
    }
}

/// The element of a list of one, otherwise the value itself.
fn only_element(value: &Value) -> &Value {
    match value.as_array().map(Vec::as_slice) {
        Some([only]) => only,
        _ => value,
    }
}

/// The elements of a list; a single value counts as a list of one.
fn elements(value: &Value) -> Option<&[Value]> {
    match value {
        Value::Array(elements) => Some(elements),
        Value::String(_) | Value::Number(_) => Some(std::slice::from_ref(value)),
        Value::Bool(_) | Value::Null | Value::Object(_) => None,
    }
}

#[cfg(test)]
#[path = "coerce_tests.rs"]
mod tests;
