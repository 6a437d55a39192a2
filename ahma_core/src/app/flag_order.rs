//! Flags of the server that stand after a subcommand are moved before it, where clap reads them.
//!
//! Global flags of clap would be listed in the help of every subcommand.

use std::ffi::{OsStr, OsString};

use clap::{Arg, Command};

/// `ahma_mcp doctor --sandbox-scope DIR` as `ahma_mcp --sandbox-scope DIR doctor`. Flags that the task has itself stay
/// with it, and so does all that follows the name of a tool.
pub(super) fn flags_first(command: &Command, words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words = words;
    let mut first: Vec<OsString> = words.next().into_iter().collect();
    let mut behind = Vec::new();
    let mut task: Option<&Command> = None;
    while let Some(word) = words.next() {
        let flag = flag(command, &word).filter(|_| task.is_none_or(|task| flag_of(task, &word).is_none()));
        if let Some(flag) = flag {
            let takes_next = flag.get_action().takes_values() && !has_value(&word);
            first.push(word);
            first.extend(takes_next.then(|| words.next()).flatten());
            continue;
        }
        let inner = task.unwrap_or(command).find_subcommand(&word);
        let takes_all = task.is_some_and(|task| task.get_arguments().any(Arg::is_trailing_var_arg_set));
        match task.or(inner) {
            None if word != "--" => first.push(word),
            _ => behind.push(word),
        }
        task = inner.or(task);
        if takes_all || behind.last().is_some_and(|word| word == "--") {
            behind.extend(words);
            break;
        }
    }
    first.extend(behind);
    first
}

fn flag<'a>(command: &'a Command, word: &OsStr) -> Option<&'a Arg> {
    flag_of(command, word).filter(|arg| !arg.is_hide_set())
}

fn flag_of<'a>(command: &'a Command, word: &OsStr) -> Option<&'a Arg> {
    let name = word.to_str()?.strip_prefix("--")?.split('=').next()?;
    command.get_arguments().find(|arg| arg.get_long() == Some(name))
}

fn has_value(word: &OsStr) -> bool {
    word.as_encoded_bytes().contains(&b'=')
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::app::args::Args;

    #[test]
    fn a_flag_of_the_server_may_stand_after_the_task() {
        for (words, expected) in [
            (
                "doctor --sandbox-scope x --json",
                "--sandbox-scope x doctor --json",
            ),
            ("doctor --json --sync", "--sync doctor --json"),
            (
                "init --network=off --client vscode",
                "--network=off init --client vscode",
            ),
            (
                "run --network off say --network on",
                "--network off run say --network on",
            ),
            ("run --help", "run --help"),
            ("login --mcp-config x jira", "login --mcp-config x jira"),
            ("token new --debug --name run", "--debug token new --name run"),
            ("audit verify -- --debug", "audit verify -- --debug"),
            (
                "--server-url http://x -- run --debug",
                "--server-url http://x -- run --debug",
            ),
            ("--mode run --debug", "--mode run --debug"),
            ("help run", "help run"),
            ("docter --debug", "docter --debug"),
            ("doctor --sandbox-scope", "--sandbox-scope doctor"),
        ] {
            let all = std::iter::once("ahma_mcp").chain(words.split(' '));
            let ordered = flags_first(&Args::command(), all.map(OsString::from));
            let ordered: Vec<_> = ordered.iter().map(|word| word.to_string_lossy()).collect();
            assert_eq!(ordered[1..].join(" "), expected, "{words}");
        }
    }
}
