//! Compares a document with the schema of tool files and names every difference.
//!
//! serde stops at the first mistake. This walk goes on, suggests the nearest known name, and leaves a repaired copy of the
//! document, so that the checks of meaning can run on everything that is readable.
//!
//! A walk of our own and not the `jsonschema` crate: the repair and the words for authors are most of it and would stay,
//! the crate takes `5.0` for an integer where serde does not, and it would bring some twenty crates into the program.

use std::collections::{BTreeMap, HashSet};

use jsonc_parser::ast;
use serde_json::{Map, Number, Value};

use ahma_common::nearest;

use super::{
    problem::{Mistake, child},
    value::{kind_of, listed},
};

/// Result of a comparison.
#[derive(Default)]
pub(super) struct Shape {
    pub(super) mistakes: Vec<Mistake>,
    /// Pointers whose value is made up, because the document's own was missing or of no use.
    pub(super) made_up: HashSet<String>,
    /// Objects of which a member is missing or of no use.
    pub(super) robbed: HashSet<String>,
    /// The document without what is wrong.
    pub(super) repaired: Option<Value>,
}

pub(super) fn compare(schema: &Value, document: &ast::Value<'_>) -> Shape {
    let mut walk = Walk::new(schema);
    walk.found.repaired = walk.value(schema, document, "");
    walk.found
}

struct Walk<'s> {
    root: &'s Value,
    found: Shape,
}

impl<'s> Walk<'s> {
    fn new(root: &'s Value) -> Self {
        Self {
            root,
            found: Shape::default(),
        }
    }

    fn error(&mut self, pointer: &str, message: String) {
        self.found.mistakes.push(Mistake::error(pointer, message));
    }

    /// The repaired value, or `None` if nothing of it is of use; then the reason is among the mistakes.
    fn value(&mut self, schema: &'s Value, node: &ast::Value<'_>, pointer: &str) -> Option<Value> {
        let schema = self.resolved(schema);
        if let Some(branches) = branches(schema) {
            return self.branches(branches, node, pointer);
        }
        let found = plain(node);
        if let Some(choices) = choices(schema) {
            return self.choice(&choices, found, pointer);
        }
        let kinds = kinds(schema);
        if !kinds.is_empty() && !kinds.iter().any(|kind| admits(kind, &found)) {
            self.error(pointer, expected(&kinds, &found));
            return None;
        }
        match node {
            ast::Value::Object(object)
                if schema.get("properties").is_some() || schema.get("additionalProperties").is_some() =>
            {
                Some(Value::Object(self.object(schema, object, pointer)))
            }
            ast::Value::Array(array) => {
                let Some(items) = schema.get("items") else {
                    return Some(found);
                };
                let elements = array.elements.iter().enumerate();
                // A useless element is replaced, not dropped: pointers to its neighbours must stay right.
                let repaired = elements.map(|(index, element)| {
                    let pointer = child(pointer, index);
                    self.value(items, element, &pointer)
                        .unwrap_or_else(|| self.make_up(items, pointer, None))
                });
                Some(Value::Array(repaired.collect()))
            }
            _ => match limit_exceeded(schema, &found) {
                Some(message) => {
                    self.error(pointer, message);
                    None
                }
                None => Some(found),
            },
        }
    }

    fn object(&mut self, schema: &'s Value, object: &ast::Object<'_>, pointer: &str) -> Map<String, Value> {
        let none = Map::new();
        let known = schema.get("properties").and_then(Value::as_object);
        let others = schema.get("additionalProperties");
        let required = required_of(schema, object);
        let mut repaired = Map::new();
        let mut seen = BTreeMap::new();
        let object_pointer = pointer;
        for member in &object.properties {
            let name = member.name.as_str();
            let pointer = child(pointer, name);
            let count: &mut usize = seen.entry(name.to_owned()).or_default();
            *count += 1;
            if *count == 2 {
                self.found
                    .mistakes
                    .push(Mistake::error(&pointer, format!("`{name}` is given more than once")).on_key());
            }
            let member_schema = match (known.and_then(|known| known.get(name)), others) {
                (Some(schema), _) => schema,
                (None, Some(Value::Bool(false))) => {
                    let names: Vec<&str> = known.unwrap_or(&none).keys().map(String::as_str).collect();
                    let hint = hint_for_unknown(&pointer, name, &plain(&member.value), &names);
                    let mistake = Mistake::error(&pointer, format!("unknown field `{name}`")).on_key();
                    self.found.mistakes.push(mistake.hint(hint));
                    continue;
                }
                (None, Some(schema)) => schema,
                (None, None) => &Value::Bool(true),
            };
            match self.value(member_schema, &member.value, &pointer) {
                Some(value) => {
                    repaired.insert(name.into(), value);
                }
                None => {
                    self.found.robbed.insert(object_pointer.to_owned());
                    if required.contains(&name) {
                        let made_up = self.make_up(member_schema, pointer, Some((name, object)));
                        repaired.insert(name.into(), made_up);
                    }
                }
            }
        }
        for name in required {
            if seen.contains_key(name) {
                continue;
            }
            self.error(pointer, format!("the field `{name}` is missing"));
            self.found.robbed.insert(object_pointer.to_owned());
            if let Some(schema) = known.and_then(|known| known.get(name)) {
                let made_up = self.make_up(schema, child(pointer, name), Some((name, object)));
                repaired.insert(name.into(), made_up);
            }
        }
        repaired
    }

    /// Tries the branches that admit this kind of value and keeps the one that fits best.
    fn branches(&mut self, branches: &'s [Value], node: &ast::Value<'_>, pointer: &str) -> Option<Value> {
        let found = plain(node);
        let branches: Vec<&'s Value> = branches.iter().map(|branch| self.resolved(branch)).collect();
        let all_choices: Option<Vec<Vec<&Value>>> = branches.iter().map(|branch| choices(branch)).collect();
        if let Some(all_choices) = all_choices {
            return self.choice(&all_choices.concat(), found, pointer);
        }
        let mut best: Option<(Walk<'s>, Option<Value>)> = None;
        for branch in &branches {
            let kinds = kinds(branch);
            if !kinds.is_empty() && !kinds.iter().any(|kind| admits(kind, &found)) {
                continue;
            }
            let mut attempt = Walk::new(self.root);
            let value = attempt.value(branch, node, pointer);
            if best
                .as_ref()
                .is_none_or(|(best, _)| attempt.found.mistakes.len() < best.found.mistakes.len())
            {
                best = Some((attempt, value));
            }
        }
        let Some((attempt, value)) = best else {
            let kinds: Vec<&str> = branches.iter().flat_map(|branch| kinds(branch)).collect();
            self.error(pointer, expected(&kinds, &found));
            return None;
        };
        self.found.mistakes.extend(attempt.found.mistakes);
        self.found.made_up.extend(attempt.found.made_up);
        self.found.robbed.extend(attempt.found.robbed);
        value
    }

    fn choice(&mut self, choices: &[&Value], found: Value, pointer: &str) -> Option<Value> {
        if choices.contains(&&found) {
            return Some(found);
        }
        let names: Vec<&str> = choices.iter().filter_map(|choice| choice.as_str()).collect();
        let mistake = match &found {
            Value::String(text) => {
                let message = format!("`{text}` is not one of {}", listed(&names));
                let near = nearest(text, names);
                let near = near.first().map(|near| format!("did you mean `{near}`?"));
                let hint = other_word(pointer, text).map(str::to_owned).or(near);
                Mistake::error(pointer, message).hint_if(hint)
            }
            other => Mistake::error(
                pointer,
                format!("expected one of {}, found {}", listed(&names), kind_of(other)),
            ),
        };
        self.found.mistakes.push(mistake);
        None
    }

    fn resolved(&self, schema: &'s Value) -> &'s Value {
        let target = schema
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|name| name.strip_prefix('#'));
        target
            .and_then(|pointer| self.root.pointer(pointer))
            .unwrap_or(schema)
    }

    /// A value of the right type in place of one that is missing, so that its neighbours can be checked.
    fn make_up(
        &mut self,
        schema: &'s Value,
        pointer: String,
        member: Option<(&str, &ast::Object<'_>)>,
    ) -> Value {
        let schema = self.resolved(schema);
        let unique = self.found.made_up.len();
        self.found.made_up.insert(pointer.clone());
        if let Some(first) = branches(schema).and_then(<[Value]>::first) {
            return self.make_up(first, pointer, member);
        }
        if let Some(choice) = choices(schema).and_then(|choices| choices.first().copied()) {
            return choice.clone();
        }
        match kinds(schema).first().copied() {
            Some("string") => match member {
                Some(("command", object)) if object.get("sequence").is_some() => "sequence".into(),
                _ => format!("made-up-{unique}").into(),
            },
            Some("array") => Value::Array(Vec::new()),
            Some("object") => {
                let mut object = Map::new();
                for name in required(schema) {
                    let member = &schema["properties"][name];
                    object.insert(name.into(), self.make_up(member, child(&pointer, name), None));
                }
                Value::Object(object)
            }
            Some("boolean") => Value::Bool(false),
            Some("integer" | "number") => Value::from(1),
            _ => Value::Null,
        }
    }
}

/// The JSON value without its place.
pub(super) fn plain(node: &ast::Value<'_>) -> Value {
    match node {
        ast::Value::StringLit(string) => Value::String(string.value.to_string()),
        ast::Value::NumberLit(number) => number
            .value
            .parse::<Number>()
            .map_or_else(|_| Value::String(number.value.into()), Value::Number),
        ast::Value::BooleanLit(boolean) => Value::Bool(boolean.value),
        ast::Value::NullKeyword(_) => Value::Null,
        ast::Value::Array(array) => Value::Array(array.elements.iter().map(plain).collect()),
        ast::Value::Object(object) => Value::Object(
            object
                .properties
                .iter()
                .map(|member| (member.name.as_str().into(), plain(&member.value)))
                .collect(),
        ),
    }
}

fn hint_for_unknown(pointer: &str, name: &str, value: &Value, known: &[&str]) -> String {
    let is_in_subcommand = pointer.rsplit('/').nth(2) == Some("subcommand");
    if name == "command" && is_in_subcommand {
        return "a subcommand has no command of its own: its `name` follows the tool's `command`".into();
    }
    if matches!(name, "async" | "asynchronous") && known.contains(&"synchronous") {
        return format!("write `\"synchronous\": {}`", *value == Value::Bool(false));
    }
    match nearest(name, known.iter().copied()).first() {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known fields are {}", listed(known)),
    }
}

/// Words of other formats, with the field that their authors mean.
fn other_word(pointer: &str, text: &str) -> Option<&'static str> {
    match (pointer.rsplit('/').next()?, text.to_ascii_lowercase().as_str()) {
        ("type", "file" | "path" | "filename" | "filepath" | "dir" | "directory" | "folder") => {
            Some("write `\"type\": \"string\", \"format\": \"path\"`")
        }
        ("type", "flag" | "switch") => Some("did you mean `boolean`?"),
        ("type", "list" | "strings" | "multiple") => Some("did you mean `array`?"),
        ("type", "float" | "double" | "decimal") => Some("did you mean `number`?"),
        ("type", "text" | "str" | "enum" | "choice") => {
            Some("did you mean `string`? `enum` lists what is allowed")
        }
        ("type", "object" | "dict" | "map") => Some("pass JSON as a `string`"),
        ("format", "file" | "filename" | "filepath" | "dir" | "directory" | "folder" | "file-path") => {
            Some("did you mean `path`?")
        }
        ("format", _) => Some(
            "leave `format` out: everything but paths is plain text; `enum`, `minimum` and `maximum` limit it",
        ),
        _ => None,
    }
}

/// The alternatives of a schema that has some.
fn branches(schema: &Value) -> Option<&[Value]> {
    let branches = ["anyOf", "oneOf"]
        .iter()
        .find_map(|key| schema.get(key)?.as_array());
    branches.map(Vec::as_slice)
}

fn choices(schema: &Value) -> Option<Vec<&Value>> {
    if let Some(constant) = schema.get("const") {
        return Some(vec![constant]);
    }
    Some(schema.get("enum")?.as_array()?.iter().collect())
}

/// Fields that an object must have. What `if` asks for is always that one field is there.
fn required_of<'s>(schema: &'s Value, object: &ast::Object<'_>) -> Vec<&'s str> {
    let mut names = required(schema);
    if let Some(condition) = schema.get("if")
        && !required(condition).iter().all(|name| object.get(name).is_some())
    {
        names.extend(schema.get("else").map(required).unwrap_or_default());
    }
    names
}

fn required(schema: &Value) -> Vec<&str> {
    let names = schema.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str).collect()
}

fn kinds(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn admits(kind: &str, value: &Value) -> bool {
    let found = kind_of(value);
    // serde takes `5.0` for a float only, so a written point makes it a number here.
    let is_whole = value.is_i64() || value.is_u64();
    match kind {
        "integer" => is_whole,
        "number" => value.is_number(),
        kind => kind == found,
    }
}

fn expected(kinds: &[&str], found: &Value) -> String {
    let mut wanted: Vec<&str> = kinds.iter().copied().filter(|kind| *kind != "null").collect();
    wanted.dedup();
    let shown = match found {
        Value::Number(number) if !(number.is_i64() || number.is_u64()) => format!("number {number}"),
        other => kind_of(other).to_owned(),
    };
    format!("expected {}, found {shown}", wanted.join(" or "))
}

fn limit_exceeded(schema: &Value, value: &Value) -> Option<String> {
    let number = value.as_f64()?;
    let limit = |name: &str| schema.get(name).and_then(Value::as_f64);
    let (minimum, maximum) = (limit("minimum"), limit("maximum"));
    let is_inside =
        minimum.is_none_or(|minimum| number >= minimum) && maximum.is_none_or(|maximum| number <= maximum);
    match (minimum, maximum) {
        _ if is_inside => None,
        (Some(minimum), Some(maximum)) => {
            Some(format!("must be between {minimum} and {maximum}, not {value}"))
        }
        (Some(minimum), None) => Some(format!("must be at least {minimum}, not {value}")),
        (None, Some(maximum)) => Some(format!("must be at most {maximum}, not {value}")),
        (None, None) => None,
    }
}
