//! The flags given on the command line, to be repeated in the entry of a client.

use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Command, ValueHint, parser::ValueSource};

/// In the order of `--help`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RepeatableFlags(Vec<RepeatableFlag>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct RepeatableFlag {
    /// With its dashes.
    name: String,
    /// None for a switch.
    value: Option<FlagValue>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum FlagValue {
    Text(String),
    Path(PathBuf),
}

/// Flags that an entry expresses differently, or that concern only this run.
const NOT_REPEATED: [&str; 4] = ["mode", "format", "sandbox_scope", "sandbox_report"];

impl RepeatableFlags {
    pub(crate) fn read(command: &Command, matches: &ArgMatches) -> Self {
        let is_given = |arg: &&Arg| {
            let id = arg.get_id().as_str();
            !arg.is_hide_set()
                && arg.get_help_heading() != Some("HTTP")
                && !NOT_REPEATED.contains(&id)
                && matches.value_source(id) == Some(ValueSource::CommandLine)
        };
        let given = command.get_arguments().filter(is_given);
        Self(given.flat_map(|arg| occurrences(arg, matches)).collect())
    }

    /// The flags as words of a command line. `path` rewrites paths for the program that starts the server.
    pub(crate) fn words(&self, path: impl Fn(&Path) -> String) -> Vec<String> {
        let mut words = Vec::new();
        for flag in &self.0 {
            let value = flag.value.as_ref().map(|value| match value {
                FlagValue::Text(text) => text.clone(),
                FlagValue::Path(given) => path(given),
            });
            match value {
                Some(value) if value.starts_with('-') => words.push(format!("{}={value}", flag.name)),
                value => {
                    words.push(flag.name.clone());
                    words.extend(value);
                }
            }
        }
        words
    }
}

fn occurrences(arg: &Arg, matches: &ArgMatches) -> Vec<RepeatableFlag> {
    let Some(long) = arg.get_long() else {
        return Vec::new();
    };
    let flag = |value| RepeatableFlag {
        name: format!("--{long}"),
        value,
    };
    if !arg.get_action().takes_values() {
        return vec![flag(None)];
    }
    let values = matches.get_raw(arg.get_id().as_str()).into_iter().flatten();
    values
        .map(|value| {
            flag(Some(match arg.get_value_hint() {
                ValueHint::AnyPath => FlagValue::Path(value.into()),
                _ => FlagValue::Text(value.to_string_lossy().into_owned()),
            }))
        })
        .collect()
}
