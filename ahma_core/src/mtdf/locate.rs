//! From a JSON pointer to the line and column in the text of a tool file.
//!
//! Only files with problems come here: a good file is read by serde alone, which is several times faster.

use jsonc_parser::{
    CollectOptions, ParseOptions, ast,
    common::{Range, Ranged},
    errors::ParseError,
};

use super::problem::{Mistake, Part, Problem};

/// The text of a file, parsed so that every value knows its place.
pub(super) struct ParsedFile<'a> {
    text: &'a str,
    pub(super) root: ast::Value<'a>,
}

impl<'a> ParsedFile<'a> {
    /// Parses the text of `file`, or names the place where it is no longer JSON.
    pub(super) fn parse(file: &str, text: &'a str) -> Result<Self, Box<Problem>> {
        // Editors on Windows put a byte order mark before the text; it means nothing.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
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
        let refused = |range, message: String| {
            Box::new(located(file, text, range, Mistake::error(String::new(), message)))
        };
        let parsed = jsonc_parser::parse_to_ast(text, &CollectOptions::default(), &strict)
            .map_err(|error| refused(error.range(), not_json(&error)))?;
        match parsed.value {
            Some(root) => Ok(Self { text, root }),
            None => Err(refused(Range::new(0, 0), "the file is empty".into())),
        }
    }

    /// Gives a mistake its place. A pointer to something that is not there falls back to the nearest parent.
    pub(super) fn problem(&self, file: &str, mistake: Mistake) -> Problem {
        located(file, self.text, self.range(&mistake), mistake)
    }

    /// Returns whether the document has something at the pointer.
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

fn not_json(error: &ParseError) -> String {
    let kind = error.kind().to_string();
    let mut letters = kind.chars();
    let first = letters.next().into_iter().flat_map(char::to_lowercase);
    format!(
        "not valid JSON: {}{}",
        first.collect::<String>(),
        letters.as_str()
    )
}

/// The part of a value that a caret can mark: all of it, or the bracket that opens it.
fn opening(node: &ast::Value<'_>) -> Range {
    let range = node.range();
    match node {
        ast::Value::Object(_) | ast::Value::Array(_) => Range::new(range.start, range.start + 1),
        _ => range,
    }
}

/// Gives a mistake its place as people count it, from 1.
fn located(file: &str, text: &str, range: Range, mistake: Mistake) -> Problem {
    let start = floor(text, range.start);
    let end = floor(text, range.end).max(start);
    let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let marked = text[start..end].lines().next().unwrap_or_default();
    Problem {
        file: file.into(),
        pointer: mistake.pointer,
        line: text[..start].matches('\n').count() + 1,
        column: text[line_start..start].chars().count() + 1,
        length: marked.chars().count().max(1),
        severity: mistake.severity,
        message: mistake.message,
        hint: mistake.hint,
    }
}

fn floor(text: &str, index: usize) -> usize {
    let mut index = index.min(text.len());
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}
