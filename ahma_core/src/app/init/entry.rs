//! The entry `Ahama` in a client's configuration, edited in place: everything else stays as it is.

use std::path::Path;

use jsonc_parser::{
    ParseOptions,
    cst::{CstInputValue, CstRootNode},
};
use serde_json::Value;
use toml_edit::{DocumentMut, Item, Table};

use super::change::{FileChange, read};
use crate::app::{
    clients::{Client, Fit, SCOPE_FLAG, SERVER},
    exit::Failure,
    settings::Environment,
};

/// The change that makes the client start our program for `project`; none if it does already.
pub(super) fn change(
    client: Client,
    project: &Path,
    environment: &Environment,
    entry: &Value,
) -> Result<Option<FileChange>, Failure> {
    let Some(path) = client.file(project, environment.home.as_deref()) else {
        return Err(Failure::user(format!(
            "{} keeps its servers in the home directory, and HOME is not set",
            client.name()
        ))
        .with_hint("set HOME, or choose another --client"));
    };
    let before = read(&path)?;
    let text = before.as_deref().unwrap_or_default();
    let after = edit(text, client, project, entry).map_err(|why| {
        Failure::user(format!("{} cannot be edited: {why}", path.display())).with_hint(format!(
            "fix it, or add the server {SERVER} by hand: {}",
            by_hand(client, project, entry)
        ))
    })?;
    Ok(after.and_then(|after| FileChange::of(path, before, after)))
}

/// The file with nothing but this entry.
fn by_hand(client: Client, project: &Path, entry: &Value) -> String {
    let text = edit("", client, project, entry)
        .ok()
        .flatten()
        .unwrap_or_default();
    format!("\n{}", text.trim_end())
}

/// None if the entry is there already.
fn edit(text: &str, client: Client, project: &Path, entry: &Value) -> Result<Option<String>, String> {
    let (mark, text) = split_mark(text);
    let edited = match client {
        Client::Codex => edit_toml(text, client, project, entry)?,
        Client::VsCode | Client::Cursor | Client::Claude | Client::Windsurf | Client::CopilotCli => {
            edit_json(text, client, project, entry)?
        }
    };
    Ok(edited.map(|edited| format!("{mark}{edited}")))
}

/// Some editors begin a file with a byte order mark, which is no part of its text.
fn split_mark(text: &str) -> (&str, &str) {
    const MARK: char = '\u{feff}';
    text.split_at(if text.starts_with(MARK) {
        MARK.len_utf8()
    } else {
        0
    })
}

/// Repair of an existing entry.
#[derive(Debug, PartialEq, Eq)]
enum Repair {
    /// New values of some fields, none if the entry is correct. The other fields are the user's.
    Fields(Vec<(&'static str, Value)>),
    Everything,
}

impl Repair {
    fn of(known: &Value, client: Client, project: &Path, entry: &Value) -> Self {
        let fit = client.fit(known, project);
        if matches!(fit, Fit::AnotherProgram | Fit::AnotherProject) {
            return Self::Everything;
        }
        let mut fields = Vec::new();
        let command = Path::new(known["command"].as_str().unwrap_or_default());
        // Only an absolute path can be judged: the client resolves others.
        if command.is_absolute() && !command.is_file() {
            fields.push(("command", entry["command"].clone()));
        }
        let had: Vec<&str> = strings(&known["args"]).collect();
        let wanted: Vec<&str> = strings(&entry["args"]).collect();
        // The last of two contradicting flags counts, so missing ones are appended.
        let missing: Vec<&str> = flags_in(&wanted)
            .filter(|flag| fit == Fit::NoScope || flag[0] != SCOPE_FLAG)
            .filter(|flag| !had.windows(flag.len()).any(|words| words == *flag))
            .flatten()
            .copied()
            .collect();
        if !missing.is_empty() {
            fields.push(("args", [had, missing].concat().into()));
        }
        Self::Fields(fields)
    }
}

/// Each flag with its value.
fn flags_in<'a, 'b>(words: &'a [&'b str]) -> impl Iterator<Item = &'a [&'b str]> {
    words.chunk_by(|_, next| !next.starts_with("--"))
}

fn strings(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn edit_json(text: &str, client: Client, project: &Path, entry: &Value) -> Result<Option<String>, String> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let root = CstRootNode::parse(text, &ParseOptions::default()).map_err(|error| error.to_string())?;
    let top = root.object_value_or_create().ok_or("it is not a JSON object")?;
    let servers = top
        .object_value_or_create(client.table())
        .ok_or_else(|| format!("`{}` is not an object", client.table()))?;
    let Some(known) = servers.get(SERVER) else {
        top.ensure_multiline();
        servers.ensure_multiline();
        servers.append(SERVER, input(entry));
        return Ok(Some(root.to_string()));
    };
    let value = known.value().and_then(|value| json_of(&value.to_string()));
    let repair = Repair::of(&value.unwrap_or_default(), client, project, entry);
    match (repair, known.object_value()) {
        (Repair::Fields(fields), _) if fields.is_empty() => return Ok(None),
        (Repair::Fields(fields), Some(object)) => {
            for (name, value) in &fields {
                match object.get(name) {
                    Some(field) => field.set_value(input(value)),
                    None => drop(object.append(name, input(value))),
                }
            }
        }
        (Repair::Fields(_) | Repair::Everything, _) => known.set_value(input(entry)),
    }
    Ok(Some(root.to_string()))
}

fn json_of(text: &str) -> Option<Value> {
    jsonc_parser::parse_to_serde_value(text, &ParseOptions::default()).ok()
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(map) => CstInputValue::Object(
            map.iter()
                .map(|(name, value)| (name.clone(), input(value)))
                .collect(),
        ),
    }
}

fn edit_toml(text: &str, client: Client, project: &Path, entry: &Value) -> Result<Option<String>, String> {
    let mut document: DocumentMut = text
        .parse()
        .map_err(|error| format!("{error}").trim_end().to_owned())?;
    let servers = document
        .entry(client.table())
        .or_insert_with(|| {
            let mut servers = Table::new();
            // Only its sub-tables have headers of their own.
            servers.set_implicit(true);
            Item::Table(servers)
        })
        .as_table_like_mut()
        .ok_or_else(|| format!("`{}` is not a table", client.table()))?;
    let value = servers.get(SERVER).map(json_of_toml).unwrap_or_default();
    match (
        Repair::of(&value, client, project, entry),
        servers.get_mut(SERVER),
    ) {
        (Repair::Fields(fields), _) if fields.is_empty() => return Ok(None),
        (Repair::Fields(fields), Some(known)) => {
            for (name, value) in &fields {
                known[*name] = toml_of(value);
            }
        }
        (Repair::Fields(_) | Repair::Everything, _) => {
            let fields = entry.as_object().into_iter().flatten();
            let table: Table = fields.map(|(name, value)| (name, toml_of(value))).collect();
            servers.insert(SERVER, Item::Table(table));
        }
    }
    Ok(Some(document.to_string()))
}

fn toml_of(value: &Value) -> Item {
    Item::Value(match value {
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        other => other.as_str().unwrap_or_default().into(),
    })
}

/// The fields of a server's table by which an entry is judged.
fn json_of_toml(item: &Item) -> Value {
    let text = |name: &str| item.get(name).and_then(Item::as_str);
    let args = item.get("args").and_then(Item::as_array);
    serde_json::json!({
        "command": text("command"),
        "args": args.map(|args| args.iter().filter_map(|arg| arg.as_str()).collect::<Vec<_>>()),
    })
}

/// The entry in a configuration, as a doctor looks for it.
pub(in crate::app) fn find(client: Client, text: &str) -> Result<Option<Value>, String> {
    let (_, text) = split_mark(text);
    if client == Client::Codex {
        let document: DocumentMut = text.parse().map_err(|error| format!("{error}"))?;
        let known = document
            .get(client.table())
            .and_then(|servers| servers.get(SERVER));
        return Ok(known.map(json_of_toml));
    }
    let value: Value = jsonc_parser::parse_to_serde_value(text, &ParseOptions::default())
        .map_err(|error| error.to_string())?;
    Ok(value
        .get(client.table())
        .and_then(|servers| servers.get(SERVER))
        .cloned())
}

#[cfg(test)]
#[path = "entry_tests.rs"]
mod tests;
