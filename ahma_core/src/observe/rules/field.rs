//! Pieces of output as rules see them, and the fields that rules name.

use std::{borrow::Cow, collections::BTreeMap};

use regex::Captures;
use serde_json::Value;

use super::{super::framing::Element, ObjectFields};

/// Arguments of a call by their names, for `{$name}`.
pub type CallArguments = BTreeMap<String, String>;

/// One piece of output in front of a rule that understands it.
pub(crate) struct Piece<'a> {
    pub(crate) content: Content<'a>,
    pub(crate) arguments: &'a CallArguments,
}

pub(crate) enum Content<'a> {
    Text {
        line: &'a str,
        captures: Captures<'a>,
        /// Of the next line, or of the one that ended a block.
        next: Option<Captures<'a>>,
        /// The lines of a block, without the first and the last.
        lines: &'a str,
    },
    Json {
        value: &'a Value,
        /// The objects around an item of a list, the innermost last.
        around: &'a [ObjectFields<'a>],
    },
    Xml {
        ancestors: &'a [Element],
        element: &'a Element,
    },
}

/// A part of a piece, as a template or a condition names it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Field {
    /// `{.}`: the line, the JSON value, the text of the element.
    Whole,
    /// Number of a group of the regular expression.
    Group(usize),
    /// Number of a group of the one for the next line, or for the last of a block.
    NextGroup(usize),
    /// `{lines}`: the lines of a block.
    Lines,
    /// `{$name}`: an argument of the call.
    Argument(String),
    /// JSON pointer.
    Pointer(String),
    Around(AroundPath),
    Path(XmlPath),
}

/// `../file`: to an object around an item, by how many of them further out, and to a place in it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AroundPath {
    ups: usize,
    name: String,
    /// JSON pointer below the field of that name.
    below: String,
}

/// `../child/@attribute`: up, down, and to an attribute or, without one, to the text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct XmlPath {
    ups: usize,
    downs: Vec<String>,
    attribute: Option<String>,
}

impl Piece<'_> {
    /// The text of a field; none if the piece does not have it.
    pub(crate) fn get(&self, field: &Field) -> Option<Cow<'_, str>> {
        match field {
            Field::Argument(name) => self.arguments.get(name).map(|text| Cow::Borrowed(text.as_str())),
            field => self.content.get(field),
        }
    }
}

impl Content<'_> {
    /// The same for fields of the output.
    pub(super) fn get(&self, field: &Field) -> Option<Cow<'_, str>> {
        match (self, field) {
            (Self::Text { line, .. }, Field::Whole) => Some(Cow::Borrowed(line)),
            (Self::Text { captures, .. }, Field::Group(group)) => {
                captures.get(*group).map(|found| Cow::Borrowed(found.as_str()))
            }
            (Self::Text { next, .. }, Field::NextGroup(group)) => {
                let found = next.as_ref()?.get(*group)?;
                Some(Cow::Borrowed(found.as_str()))
            }
            (Self::Text { lines, .. }, Field::Lines) => Some(Cow::Borrowed(lines)),
            (Self::Json { value, .. }, Field::Whole) => json_text(value),
            (Self::Json { value, .. }, Field::Pointer(pointer)) => value.pointer(pointer).and_then(json_text),
            (Self::Json { around, .. }, Field::Around(path)) => path.find(around).map(Cow::Owned),
            (Self::Xml { element, .. }, Field::Whole) => Some(Cow::Borrowed(element.text.trim())),
            (Self::Xml { ancestors, element }, Field::Path(path)) => {
                path.find(ancestors, element).map(Cow::Borrowed)
            }
            // `compile` gives each rule only fields of its own kind of piece.
            (Self::Text { .. } | Self::Json { .. } | Self::Xml { .. }, _) => None,
        }
    }
}

fn json_text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(Cow::Borrowed(text)),
        other => Some(Cow::Owned(other.to_string())),
    }
}

impl AroundPath {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut ups = 0;
        let mut rest = text;
        while let Some(outer) = rest.strip_prefix("../") {
            ups += 1;
            rest = outer;
        }
        let (name, below) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        (ups > 0 && !name.is_empty()).then(|| Self {
            ups,
            name: name.replace("~1", "/").replace("~0", "~"),
            below: below.to_owned(),
        })
    }

    /// Of what is around, only the field that is named is read: the rest may be a whole report.
    fn find(&self, around: &[ObjectFields<'_>]) -> Option<String> {
        let object = around.get(around.len().checked_sub(self.ups)?)?;
        let value: Value = serde_json::from_str(object.get(&self.name)?.get()).ok()?;
        json_text(value.pointer(&self.below)?).map(Cow::into_owned)
    }
}

impl XmlPath {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut path = Self {
            ups: 0,
            downs: Vec::new(),
            attribute: None,
        };
        for step in text.split('/') {
            let is_name =
                !step.is_empty() && !step.contains(|c: char| c.is_whitespace() || "@<>[]()*".contains(c));
            match step.strip_prefix('@') {
                _ if path.attribute.is_some() => return None,
                Some(name) if !name.is_empty() && !name.contains('@') => {
                    path.attribute = Some(name.to_owned())
                }
                Some(_) => return None,
                None if step == ".." && path.downs.is_empty() => path.ups += 1,
                None if is_name && step != ".." => path.downs.push(step.to_owned()),
                None => return None,
            }
        }
        Some(path)
    }

    fn find<'a>(&self, ancestors: &'a [Element], element: &'a Element) -> Option<&'a str> {
        let start = match self.ups {
            0 => element,
            ups => ancestors.get(ancestors.len().checked_sub(ups)?)?,
        };
        self.find_below(start, &self.downs)
    }

    /// The first place below `element` that has all of the path.
    fn find_below<'a>(&self, element: &'a Element, downs: &[String]) -> Option<&'a str> {
        let Some((name, rest)) = downs.split_first() else {
            return match &self.attribute {
                None => Some(element.text.trim()),
                Some(name) => element
                    .attributes
                    .iter()
                    .find(|(key, _)| key == name)
                    .map(|(_, value)| value.as_str()),
            };
        };
        let same_name = |child: &&Element| child.name == *name || child.local_name() == name;
        element
            .children
            .iter()
            .filter(same_name)
            .find_map(|child| self.find_below(child, rest))
    }
}
