//! From the arguments of a file tool to its request.

use std::path::PathBuf;

use serde_json::{Map, Value};

use super::{FileRequest, ReadRequest, TextEdit, named_arguments::NamedArguments, paths};
use crate::mtdf::{ArgumentProblem, FileTool, META_PARAMETERS};

/// Lines read unless the call says otherwise; the budget of bytes usually ends first.
const DEFAULT_MAX_LINES: usize = 2_000;
/// Bytes of one answer: little enough that no client cuts it.
const MAX_READ_BYTES: usize = 7_000;
/// Files read by one call.
const MAX_PATHS: usize = 50;

/// Names that the same arguments have in the file tools of others.
const ALIASES: [(&str, &[&str]); 7] = [
    ("path", &["file_path", "filepath", "file", "filename"]),
    ("content", &["contents", "file_text"]),
    ("old", &["old_string", "old_str"]),
    ("new", &["new_string", "new_str"]),
    ("all", &["replace_all"]),
    ("from_line", &["offset", "start_line"]),
    ("max_lines", &["limit"]),
];

/// The request, or everything that is wrong with the arguments.
pub(super) fn request(
    tool: FileTool,
    arguments: &Map<String, Value>,
) -> Result<FileRequest, Vec<ArgumentProblem>> {
    let mut arguments = NamedArguments::new(arguments.clone()).besides(&META_PARAMETERS);
    for (name, others) in ALIASES {
        arguments.aliases(name, others);
    }
    let request = match tool {
        FileTool::Read => FileRequest::Read(read(&mut arguments)),
        FileTool::Write => FileRequest::Write {
            path: path(&mut arguments),
            content: content(&mut arguments),
        },
        FileTool::Edit => FileRequest::Edit {
            path: path(&mut arguments),
            edits: edits(&mut arguments),
        },
        FileTool::Patch => FileRequest::Patch {
            patch: arguments.required_text("patch"),
        },
    };
    arguments.finish()?;
    Ok(request)
}

fn read(arguments: &mut NamedArguments) -> ReadRequest {
    let mut paths = arguments.texts("path", MAX_PATHS).unwrap_or_default();
    paths.extend(arguments.texts("paths", MAX_PATHS).unwrap_or_default());
    if paths.is_empty() {
        arguments.problem("path", "is required");
    }
    if paths.len() > MAX_PATHS {
        arguments.problem("paths", format!("must be {MAX_PATHS} at most"));
    }
    for path in &paths {
        check(arguments, path);
    }
    let from_line = arguments.integer("from_line", 1..=u64::MAX);
    let max_lines = arguments.integer("max_lines", 1..=u64::MAX);
    let number = |number: Option<u64>, default| {
        number.map_or(default, |number| usize::try_from(number).unwrap_or(usize::MAX))
    };
    ReadRequest {
        paths: paths.into_iter().map(PathBuf::from).collect(),
        from_line: number(from_line, 1),
        max_lines: number(max_lines, DEFAULT_MAX_LINES),
        max_bytes: MAX_READ_BYTES,
    }
}

fn path(arguments: &mut NamedArguments) -> PathBuf {
    let path = arguments.required_text("path");
    check(arguments, &path);
    PathBuf::from(path)
}

fn check(arguments: &mut NamedArguments, path: &str) {
    if let Some(objection) = paths::objection(path) {
        arguments.problem("path", objection);
    }
}

/// The server has put the output of an operation in its place if one was named.
fn content(arguments: &mut NamedArguments) -> String {
    let (content, format) = (arguments.text("content"), arguments.text("format"));
    let from_output = arguments.text("from_output");
    if from_output.is_some() {
        arguments.problem(
            "from_output",
            "names an operation of a server; `ahma_mcp history export` writes one to a file",
        );
    } else if format.is_some() {
        arguments.problem("format", "has a meaning only with `from_output`");
    } else if content.is_none() {
        arguments.problem("content", "is required, or `from_output`");
    }
    content.unwrap_or_default()
}

/// `edits`, or `old`, `new` and `all` of a single edit next to the path.
fn edits(arguments: &mut NamedArguments) -> Vec<TextEdit> {
    let expected = "an array of {old, new, all?} with strings `old` and `new`";
    let edits = arguments.take("edits", expected, |value| {
        let value = match value {
            edit @ Value::Object(_) => Value::Array(vec![edit]),
            other => other,
        };
        serde_json::from_value(value).ok()
    });
    let single = (arguments.text("old"), arguments.text("new"));
    let all = arguments.flag("all");
    let edits: Vec<TextEdit> = match (edits, single) {
        (Some(edits), (None, None)) => edits,
        (None, (Some(old), Some(new))) => vec![TextEdit {
            old,
            new,
            all: all.unwrap_or(false),
        }],
        (Some(_), _) => {
            arguments.problem("old", "cannot be combined with `edits`: put it into `edits`");
            return Vec::new();
        }
        (None, _) => Vec::new(),
    };
    if edits.is_empty() {
        arguments.problem("edits", "must have at least one {old, new}");
    }
    edits
}

#[cfg(test)]
#[path = "file_arguments_tests.rs"]
mod tests;
