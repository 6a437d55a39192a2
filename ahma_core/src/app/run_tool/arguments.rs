//! The arguments of a tool on a command line, read by a clap command that is made from its input schema.
//!
//! Only names are decided here. Whether a value fits is for the plan to say: a text that cannot be read as its type is
//! passed on as text, and refused there by name.

use clap::{
    Arg, ArgAction, ArgMatches, Command,
    error::{ContextKind, ContextValue, ErrorKind},
};
use serde_json::{Map, Number, Value};

use crate::{
    app::args::Args,
    catalog::Tool,
    mtdf::{Dash, Form, LeafAction},
};

/// The error may also be a request for help.
pub(super) fn read(tool: &Tool, words: &[String]) -> Result<Map<String, Value>, clap::Error> {
    let mut command = command(tool);
    let words = words_with_two_dashes(tool, words);
    let matches = command
        .try_get_matches_from_mut(words)
        .map_err(|error| with_better_tip(error, tool))?;
    let mut arguments = Map::new();
    for (name, schema) in properties(tool) {
        let mut texts = matches.get_many::<String>(name).into_iter().flatten().peekable();
        if texts.peek().is_some() {
            arguments.insert(name.to_owned(), value(schema, texts));
        }
    }
    place_positional(tool, &mut command, &matches, &mut arguments)?;
    Ok(arguments)
}

/// Fills the positional parameters that were not given by name, in order; a list takes all words that are left.
fn place_positional(
    tool: &Tool,
    command: &mut Command,
    matches: &ArgMatches,
    arguments: &mut Map<String, Value>,
) -> Result<(), clap::Error> {
    let names = positional_names(tool);
    let words = [FIRST_WORD, OTHER_WORDS].into_iter();
    let words = words.filter_map(|id| matches.try_get_many::<String>(id).ok().flatten());
    let mut words = words.flatten().peekable();
    if is_script(tool) && words.clone().nth(1).is_some() {
        let script = words.map(String::as_str).collect::<Vec<_>>().join(" ");
        let quoted = shlex::try_quote(&script).map_or(script.clone(), Into::into);
        let message = format!(
            "the script must be one word; put it in quotes: ahma_mcp run {} {quoted}",
            tool.name
        );
        return Err(command.error(ErrorKind::TooManyValues, message));
    }
    for (name, schema) in names.iter().filter_map(|name| property(tool, name)) {
        if words.peek().is_some() && !arguments.contains_key(name) {
            let count = if is_list(schema) { usize::MAX } else { 1 };
            arguments.insert(name.to_owned(), value(schema, words.by_ref().take(count)));
        }
    }
    match words.next() {
        None => Ok(()),
        Some(word) => Err(command.error(
            ErrorKind::UnknownArgument,
            format!("unexpected argument '{word}' found"),
        )),
    }
}

/// The command that `ahma_mcp run TOOL` is.
///
/// Words without a name go into two hidden arguments: clap forbids more than one positional list, and lets a list swallow
/// the options that follow a script.
fn command(tool: &Tool) -> Command {
    let positional = positional_names(tool);
    let options = properties(tool).map(|(name, schema)| {
        let option = option(tool, name, schema);
        match positional.iter().position(|known| *known == name) {
            Some(place) => option
                .help_heading("Arguments, also without their names")
                .display_order(place),
            None => option,
        }
    });
    let has_numbers = (positional.iter())
        .filter_map(|name| property(tool, name))
        .any(|(_, schema)| is_numeric(schema));
    let words = (!positional.is_empty()).then(|| {
        let word = |id| {
            Arg::new(id)
                .hide(true)
                .allow_negative_numbers(has_numbers)
                .allow_hyphen_values(is_script(tool))
        };
        [word(FIRST_WORD), word(OTHER_WORDS).num_args(0..)]
    });
    Command::new(format!("ahma_mcp run {}", tool.name))
        .bin_name(format!("ahma_mcp run {}", tool.name))
        .about(tool.leaf.description.trim().to_owned())
        .no_binary_name(true)
        .override_usage(usage(tool))
        .max_term_width(110)
        .args(options)
        .args(words.into_iter().flatten())
}

const FIRST_WORD: &str = "<first word>";
const OTHER_WORDS: &str = "<other words>";

/// A positional parameter can be given by name too.
fn option(tool: &Tool, name: &str, schema: &Value) -> Arg {
    let long = long_name(name);
    let mut arg = Arg::new(name.to_owned())
        .long(long.clone())
        .value_name(type_name(schema))
        .help(help(tool, name, schema))
        .allow_negative_numbers(is_numeric(schema))
        .action(if is_list(schema) {
            ArgAction::Append
        } else {
            ArgAction::Set
        });
    if name != long {
        arg = arg.alias(name.trim_start_matches('-').to_owned());
    }
    if schema["type"] == "boolean" {
        arg = arg
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
            .hide_possible_values(true);
    }
    let mut parameters = tool.leaf.parameters();
    let alias = parameters
        .find(|parameter| parameter.name == name)
        .and_then(|parameter| parameter.alias.as_deref());
    match alias.map(|alias| (alias, alias.chars().next(), alias.chars().count())) {
        Some((alias, Some(letter), 1)) => arg.short(letter).alias(alias.to_owned()),
        Some((alias, ..)) => arg.visible_alias(long_name(alias)),
        None => arg,
    }
}

/// `ahma_mcp run say [OPTIONS] <format> [words]...`
fn usage(tool: &Tool) -> String {
    let positional = positional_names(tool);
    let mut usage = format!("ahma_mcp run {}", tool.name);
    for (name, schema) in properties(tool).filter(|(name, _)| is_required(tool, name)) {
        if !positional.contains(&name) {
            usage.push_str(&format!(" --{} <{}>", long_name(name), type_name(schema)));
        }
    }
    usage.push_str(" [OPTIONS]");
    for (name, schema) in positional.iter().filter_map(|name| property(tool, name)) {
        let dots = if is_list(schema) { "..." } else { "" };
        usage.push_str(&match is_required(tool, name) {
            true => format!(" <{name}>{dots}"),
            false => format!(" [{name}]{dots}"),
        });
    }
    usage
}

fn help(tool: &Tool, name: &str, schema: &Value) -> String {
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut parts = Vec::new();
    parts.extend(schema["description"].as_str().map(str::to_owned));
    if is_required(tool, name) {
        parts.push("[required]".to_owned());
    }
    if let Some(choices) = schema["enum"].as_array() {
        let choices: Vec<_> = choices.iter().map(plain).collect();
        parts.push(format!("[possible values: {}]", choices.join(", ")));
    }
    if let Some(default) = schema.get("default") {
        parts.push(format!("[default: {}]", plain(default)));
    }
    parts.join(" ")
}

/// Programs such as `find` have options with one dash, which clap does not know.
fn words_with_two_dashes(tool: &Tool, words: &[String]) -> Vec<String> {
    let mut is_option = true;
    let rewritten = words.iter().map(|word| {
        is_option &= word != "--";
        let name = word.split('=').next().unwrap_or_default();
        match is_option && name.starts_with('-') && property(tool, name).is_some() {
            true => format!("-{word}"),
            false => word.clone(),
        }
    });
    rewritten.collect()
}

/// clap does not know the flags of the server, nor which tools take words that begin with a dash.
fn with_better_tip(mut error: clap::Error, tool: &Tool) -> clap::Error {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let flag = word.trim_start_matches('-').to_owned();
    if Args::has_flag(&flag) {
        let tip = format!(
            "--{flag} is a flag of the server and goes before the tool: ahma_mcp run --{flag} ... {}",
            tool.name
        );
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    } else if !takes_dashes_after_separator(tool) {
        error.remove(ContextKind::Suggested);
    }
    error
}

fn takes_dashes_after_separator(tool: &Tool) -> bool {
    let guarded = match &tool.leaf.action {
        LeafAction::Command(template) => template.end_of_options,
        LeafAction::Sequence(_) | LeafAction::Script | LeafAction::ReadOnlyScript | LeafAction::File(_) => {
            false
        }
    };
    tool.leaf.parameters().any(|parameter| match parameter.form {
        Form::Positional(Dash::Guarded) => guarded,
        Form::Positional(Dash::Verbatim | Dash::AfterSeparator) => true,
        Form::Flag(..) | Form::FlagOnce(_) | Form::File(_) | Form::Stdin => false,
    })
}

/// The parameters with their schemas, but for the execution mode: a terminal always waits for the end.
fn properties(tool: &Tool) -> impl Iterator<Item = (&str, &Value)> {
    let properties = tool.input_schema.get("properties").and_then(Value::as_object);
    properties
        .into_iter()
        .flatten()
        .map(|(name, schema)| (name.as_str(), schema))
        .filter(|(name, _)| *name != "execution_mode")
}

fn property<'a>(tool: &'a Tool, name: &str) -> Option<(&'a str, &'a Value)> {
    properties(tool).find(|(known, _)| *known == name)
}

fn positional_names(tool: &Tool) -> Vec<&str> {
    if is_script(tool) {
        return vec!["command"];
    }
    (tool.leaf.parameters())
        .filter(|parameter| matches!(parameter.form, Form::Positional(_)))
        .map(|parameter| parameter.name.as_str())
        .collect()
}

fn long_name(name: &str) -> String {
    name.trim_start_matches('-').replace('_', "-")
}

fn type_name(schema: &Value) -> String {
    let schema = if is_list(schema) { &schema["items"] } else { schema };
    schema["type"].as_str().unwrap_or("value").to_owned()
}

fn is_script(tool: &Tool) -> bool {
    matches!(tool.leaf.action, LeafAction::Script | LeafAction::ReadOnlyScript)
}

fn is_list(schema: &Value) -> bool {
    schema["type"] == "array"
}

fn is_numeric(schema: &Value) -> bool {
    matches!(type_name(schema).as_str(), "integer" | "number")
}

fn is_required(tool: &Tool, name: &str) -> bool {
    let required = tool.input_schema.get("required").and_then(Value::as_array);
    required.is_some_and(|required| required.iter().any(|known| known == name))
}

/// At least one text.
fn value<'a>(schema: &Value, texts: impl Iterator<Item = &'a String>) -> Value {
    let kind = type_name(schema);
    let mut values = texts.map(|text| match kind.as_str() {
        "boolean" => text.parse().map_or_else(|_| text.as_str().into(), Value::Bool),
        "integer" => text.parse::<i64>().map_or_else(|_| number(text), Value::from),
        "number" => number(text),
        _ => text.as_str().into(),
    });
    if is_list(schema) {
        return values.collect();
    }
    values.next().unwrap_or_default()
}

fn number(text: &str) -> Value {
    let number = text.parse::<f64>().ok().and_then(Number::from_f64);
    number.map_or_else(|| text.into(), Value::Number)
}

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod tests;
