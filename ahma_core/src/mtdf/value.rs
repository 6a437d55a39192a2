//! The values that an argument accepts, and values in another form that can only mean one of them.
//!
//! These are taken: `"x"` for `["x"]` and back, `"true"` for `true`, `"3"` for `3`, `3` for `"3"`. Everything else stays as it
//! is, for [`ValueType::objections`] to judge.

use std::borrow::Cow;

use serde_json::{Map, Number, Value, json};

/// The type of an argument, with its limits.
#[derive(Debug, Clone, PartialEq)]
pub enum ValueType {
    Boolean,
    Scalar(Scalar),
    Array(Scalar),
}

/// A value that is one element of a command line.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar {
    String {
        choices: Vec<String>,
    },
    /// A string that names a file inside the scope.
    Path,
    Integer(Range),
    Number(Range),
}

/// Limits of a number. Choices, when there are any, are all inside.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Range {
    pub minimum: Option<f64>,
    pub maximum: Option<f64>,
    pub choices: Vec<f64>,
}

impl ValueType {
    /// Every reason why `value` does not fit; none means that it fits.
    pub fn objections(&self, value: &Value) -> Vec<String> {
        match self {
            Self::Boolean if value.is_boolean() => Vec::new(),
            Self::Boolean => vec![expected("boolean", value)],
            Self::Scalar(scalar) => scalar.objection(value).into_iter().collect(),
            Self::Array(scalar) => match value {
                Value::Array(items) => items
                    .iter()
                    .enumerate()
                    .filter_map(|(index, item)| Some(format!("element {index} {}", scalar.objection(item)?)))
                    .collect(),
                _ => vec![expected("array", value)],
            },
        }
    }

    /// The JSON Schema of the value.
    pub(crate) fn schema(&self) -> Map<String, Value> {
        match self {
            Self::Boolean => object(json!({ "type": "boolean" })),
            Self::Scalar(scalar) => scalar.schema(),
            Self::Array(scalar) => object(json!({ "type": "array", "items": scalar.schema() })),
        }
    }

    /// The elements of `value` as text, one for each element of the command line. Only for values that fit.
    pub(crate) fn texts(value: &Value) -> Vec<String> {
        match value {
            Value::Array(items) => items.iter().map(text).collect(),
            single => vec![text(single)],
        }
    }

    /// Returns whether the value names one file or several.
    pub(crate) fn is_path(&self) -> bool {
        matches!(self, Self::Scalar(Scalar::Path) | Self::Array(Scalar::Path))
    }
}

impl Scalar {
    pub(super) fn objection(&self, value: &Value) -> Option<String> {
        match (self, value) {
            (Self::String { .. } | Self::Path, Value::String(text)) if text.contains('\0') => {
                Some("must not contain a NUL character".into())
            }
            (Self::Path, Value::String(text)) if text.is_empty() => Some("must name a file".into()),
            (Self::Path, Value::String(_)) => None,
            (Self::String { choices }, Value::String(text)) => {
                let known = choices.is_empty() || choices.contains(text);
                (!known).then(|| format!("must be one of {}, not `{text}`", listed(choices)))
            }
            (Self::String { .. } | Self::Path, other) => Some(expected("string", other)),
            (Self::Integer(range), Value::Number(number)) => match integer(number) {
                Some(integer) => range.objection(integer as f64, value),
                None => Some(expected("integer", value)),
            },
            (Self::Integer(_), other) => Some(expected("integer", other)),
            (Self::Number(range), Value::Number(number)) => range.objection(number.as_f64()?, value),
            (Self::Number(_), other) => Some(expected("number", other)),
        }
    }

    fn schema(&self) -> Map<String, Value> {
        match self {
            Self::String { choices } if choices.is_empty() => object(json!({ "type": "string" })),
            Self::String { choices } => object(json!({ "type": "string", "enum": choices })),
            // Strict clients refuse schemas with a format that they do not know, so `path` is not passed on.
            Self::Path => object(json!({ "type": "string" })),
            Self::Integer(range) => range.schema("integer"),
            Self::Number(range) => range.schema("number"),
        }
    }
}

impl Range {
    fn objection(&self, number: f64, shown: &Value) -> Option<String> {
        if self.minimum.is_some_and(|minimum| number < minimum) {
            return Some(format!("must be at least {}, not {shown}", self.minimum?));
        }
        if self.maximum.is_some_and(|maximum| number > maximum) {
            return Some(format!("must be at most {}, not {shown}", self.maximum?));
        }
        let known = self.choices.is_empty() || self.choices.contains(&number);
        (!known).then(|| format!("must be one of {}, not {shown}", listed(&self.choices)))
    }

    fn schema(&self, kind: &str) -> Map<String, Value> {
        let mut schema = object(json!({ "type": kind }));
        if let Some(minimum) = self.minimum {
            schema.insert("minimum".into(), plain(minimum));
        }
        if let Some(maximum) = self.maximum {
            schema.insert("maximum".into(), plain(maximum));
        }
        if !self.choices.is_empty() {
            schema.insert("enum".into(), self.choices.iter().copied().map(plain).collect());
        }
        schema
    }
}

/// Kind of a JSON value, in the words of JSON Schema.
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if integer(number).is_some() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// `a`, `b` and so on, for messages.
pub(crate) fn listed<T: std::fmt::Display>(choices: &[T]) -> String {
    choices
        .iter()
        .map(|choice| format!("`{choice}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

fn expected(kind: &str, found: &Value) -> String {
    let article = if kind.starts_with(['a', 'i', 'o']) {
        "an"
    } else {
        "a"
    };
    format!("must be {article} {kind}, not {}", kind_of(found))
}

/// JSON has one kind of number: 5.0 is an integer, too. Beyond 2^53 only what is written without a point counts.
fn integer(number: &Number) -> Option<i128> {
    if let Some(signed) = number.as_i64() {
        return Some(signed.into());
    }
    if let Some(unsigned) = number.as_u64() {
        return Some(unsigned.into());
    }
    let float = number.as_f64()?;
    (float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_992.0).then_some(float as i128)
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => {
            integer(number).map_or_else(|| number.to_string(), |integer| integer.to_string())
        }
        other => other.to_string(),
    }
}

/// Whole limits are shown without a point.
fn plain(number: f64) -> Value {
    Number::from_f64(number).map_or(Value::Null, |number| {
        integer(&number).map_or(Value::Number(number), |whole| json!(whole as i64))
    })
}

/// The members of a JSON object.
pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

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
#[path = "value_tests.rs"]
mod tests;
