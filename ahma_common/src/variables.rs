//! Environment variables that stand for flags, and the one that holds a value that cannot be used.
//!
//! The rule is `--sync-wait` and `AHMA_SYNC_WAIT`. A few flags have an older name in their definition; the regular one
//! works for them too.

use std::ffi::OsStr;

use clap::{
    Command,
    error::{ContextKind, ContextValue},
};

use crate::contract::{
    CLIENT_TOKEN_FILE_VARIABLE, HTTP_TOKENS_FILE_VARIABLE, TOKEN_FILE_VARIABLE, TOKENS_FILE_VARIABLE,
};

/// Prefix of the variable of every flag.
pub const PREFIX: &str = "AHMA_";

/// Variables that do not follow the rule, and the regular name.
const REGULAR_NAMES: [(&str, &str); 2] = [
    (HTTP_TOKENS_FILE_VARIABLE, TOKENS_FILE_VARIABLE),
    (CLIENT_TOKEN_FILE_VARIABLE, TOKEN_FILE_VARIABLE),
];

/// True if the user wants no colours, as <https://no-color.org> has it: a variable that is empty says nothing.
#[must_use]
pub fn no_color() -> bool {
    refuses_colour(std::env::var_os("NO_COLOR").as_deref())
}

fn refuses_colour(value: Option<&OsStr>) -> bool {
    value.is_some_and(|value| !value.is_empty())
}

/// The command with the regular name where only that one is set.
#[must_use]
pub fn with_regular_names(command: Command) -> Command {
    with_names_set(command, |name| std::env::var_os(name).is_some())
}

fn with_names_set(command: Command, is_set: impl Fn(&str) -> bool + Copy) -> Command {
    command
        .mut_args(|arg| {
            let regular = arg.get_env().and_then(OsStr::to_str).and_then(regular_name);
            match (regular, arg.get_env()) {
                (Some(regular), Some(own)) if is_set(regular) && !own.to_str().is_some_and(is_set) => {
                    arg.env(regular)
                }
                _ => arg,
            }
        })
        .mut_subcommands(|subcommand| with_names_set(subcommand, is_set))
}

fn regular_name(variable: &str) -> Option<&'static str> {
    let found = REGULAR_NAMES.iter().find(|(own, _)| *own == variable);
    found.map(|(_, regular)| *regular)
}

/// Every variable that the command and its subcommands read.
pub fn names(command: &Command) -> Vec<String> {
    let own = command.get_arguments().filter_map(|arg| arg.get_env());
    let mut names: Vec<String> = own.map(|name| name.to_string_lossy().into_owned()).collect();
    names.extend(command.get_subcommands().flat_map(self::names));
    for (variable, regular) in REGULAR_NAMES {
        if names.iter().any(|name| name == variable) {
            names.push(regular.to_owned());
        }
    }
    names
}

/// The variable whose value `error` is about, if it is about one: clap names the flag, which may not have been written.
pub fn at_fault(error: &clap::Error, command: &Command) -> Option<String> {
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let long = flag.split([' ', '=']).next()?.strip_prefix("--")?;
    let arg = command.get_arguments().find(|arg| arg.get_long() == Some(long))?;
    let variable = arg.get_env()?;
    let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue) else {
        return None;
    };
    let is_its_value = std::env::var_os(variable).is_some_and(|set| set == value.as_str());
    let is_on_command_line = std::env::args_os().any(|word| {
        let word = word.to_string_lossy();
        word.strip_prefix("--")
            .is_some_and(|word| word.split('=').next() == Some(long))
    });
    (is_its_value && !is_on_command_line).then(|| variable.to_string_lossy().into_owned())
}

#[cfg(test)]
#[path = "variables_tests.rs"]
mod tests;
