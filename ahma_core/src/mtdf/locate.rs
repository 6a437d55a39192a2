//! From a JSON pointer to the line and column in the text of a tool file.
//!
//! Only files with problems come here: a good file is read by serde alone, which is several times faster.

use jsonc_parser::{
    CollectOptions, ParseOptions, ast,
    common::{Range, Ranged},
    errors::ParseError,
};

use super::problem::{Mistake, Part, Problem, Severity};

/// The text of a file, parsed so that every value knows its place.
pub(super) struct Document<'a> {
    text: &'a str,
    pub(super) root: ast::Value<'a>,
}

/// The whole text is not JSON.
pub(super) struct NotJson {
    range: Range,
    message: String,
}

/// A place in a text as people count it, from 1.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) length: usize,
}

impl<'a> Document<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Self, NotJson> {
        let strict = ParseOptions {
            allow_comments: false,
            allow_loose_object_property_names: false,
            allow_trailing_commas: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        let parsed =
            jsonc_parser::parse_to_ast(text, &CollectOptions::default(), &strict).map_err(NotJson::from)?;
        match parsed.value {
            Some(root) => Ok(Self { text, root }),
            None => Err(NotJson {
                range: Range::new(0, 0),
                message: "the file is empty".into(),
            }),
        }
    }

    /// Gives a mistake its place. A pointer to something that is not there falls back to the nearest parent.
    pub(super) fn problem(&self, file: &str, mistake: Mistake) -> Problem {
        let place = place(self.text, self.range(&mistake));
        let Mistake {
            pointer,
            severity,
            message,
            hint,
            ..
        } = mistake;
        let Place { line, column, length } = place;
        Problem {
            file: file.into(),
            pointer,
            line,
            column,
            length,
            severity,
            message,
            hint,
        }
    }

    /// Whether the document has something at the pointer.
    pub(super) fn has(&self, pointer: &str) -> bool {
        let mut tokens = pointer.split('/').skip(1);
        tokens
            .try_fold(&self.root, |node, token| Some(below(node, token)?.1))
            .is_some()
    }

    fn range(&self, mistake: &Mistake) -> Range {
        let mut node = &self.root;
        let mut range = opening(node);
        for token in mistake.pointer.split('/').skip(1) {
            let Some(found) = below(node, token) else {
                return opening(node);
            };
            (range, node) = found;
        }
        match mistake.part {
            Part::Key => range,
            Part::Value => opening(node),
        }
    }
}

/// The member or element that a token of a pointer leads to, and the range of its key, or of itself if it has none.
fn below<'n, 'a>(node: &'n ast::Value<'a>, token: &str) -> Option<(Range, &'n ast::Value<'a>)> {
    let name = token.replace("~1", "/").replace("~0", "~");
    match node {
        // The last of several members with one name is the one that counts.
        ast::Value::Object(object) => {
            let mut members = object.properties.iter();
            let member = members.rfind(|member| member.name.as_str() == name)?;
            Some((member.name.range(), &member.value))
        }
        ast::Value::Array(array) => {
            let element = array.elements.get(name.parse::<usize>().ok()?)?;
            Some((opening(element), element))
        }
        _ => None,
    }
}

impl From<ParseError> for NotJson {
    fn from(error: ParseError) -> Self {
        let kind = error.kind().to_string();
        let mut letters = kind.chars();
        let lowered = letters
            .next()
            .map(|first| first.to_lowercase().chain(letters).collect())
            .unwrap_or(kind.clone());
        Self {
            range: error.range(),
            message: format!("not valid JSON: {lowered}"),
        }
    }
}

impl NotJson {
    pub(super) fn problem(self, file: &str, text: &str) -> Problem {
        let Place { line, column, length } = place(text, self.range);
        Problem {
            file: file.into(),
            pointer: String::new(),
            line,
            column,
            length,
            severity: Severity::Error,
            message: self.message,
            hint: None,
        }
    }
}

/// The part of a value that a caret can mark: all of it, or the bracket that opens it.
fn opening(node: &ast::Value<'_>) -> Range {
    let range = node.range();
    match node {
        ast::Value::Object(_) | ast::Value::Array(_) => Range::new(range.start, range.start + 1),
        _ => range,
    }
}

fn place(text: &str, range: Range) -> Place {
    let start = floor(text, range.start);
    let end = floor(text, range.end).max(start);
    let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let marked = text[start..end].lines().next().unwrap_or_default();
    Place {
        line: text[..start].matches('\n').count() + 1,
        column: text[line_start..start].chars().count() + 1,
        length: marked.chars().count().max(1),
    }
}

fn floor(text: &str, index: usize) -> usize {
    let mut index = index.min(text.len());
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}
