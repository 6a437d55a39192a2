//! The course of `ahma_mcp init`, and the questions it asks.

use std::{
    io::{BufRead as _, IsTerminal as _, Write as _},
    path::Path,
};

use super::{
    change::ChangeResult,
    entry,
    tool_files::{self, ExistingFiles},
};
use crate::app::{
    clients::Client,
    exit::Failure,
    packs::{self, Pack},
    project::{EnclosingProject, find_on_path},
    repeatable_flags::RepeatableFlags,
    settings::{Environment, Settings},
    subcommands::InitArgs,
};

pub(in crate::app) fn run(
    args: &InitArgs,
    settings: &Settings,
    flags: &RepeatableFlags,
    environment: &Environment,
) -> Result<(), Failure> {
    let project = &settings.sandbox.scope;
    let packs = packs::chosen(project, &args.packs)?;
    let titles: Vec<_> = packs.iter().map(Pack::title).collect();
    if let Some(whole) = &settings.enclosing {
        refuse_part(whole, project, &packs)?;
    }
    say(&format!("{}: {}", project.display(), titles.join(", ")));

    if args.packs.is_empty() && !packs.iter().any(Pack::is_written_in) {
        say(&format!(
            "note: no known language found; tool files exist for {}; ahma_mcp packs shows all\n\
             note: sandboxed_shell runs any command, and a JSON file in {} turns a program into a tool",
            packs::languages()?.join(", "),
            settings.tools_dir.display()
        ));
    }
    let existing = match args.update_tools {
        true => ExistingFiles::Update,
        false => ExistingFiles::Keep,
    };
    let mut changes = tool_files::changes(&packs, &settings.tools_dir, existing)?;
    let client = args.client.or_else(|| asked_client(project));
    if let Some(client) = client {
        let flags = client.flags(flags, project, &environment.working_directory);
        let entry = client.entry(&command_name(), project, flags);
        changes.extend(entry::change(client, project, environment, &entry)?);
    }

    let entry_file = client.and_then(|client| client.file(project, environment.home.as_deref()));
    let mut refused = Vec::new();
    let mut entry_is_new = false;
    for change in &changes {
        match change.make(args.dry_run, |_| args.yes || asked_yes())? {
            ChangeResult::Written => entry_is_new |= entry_file.as_ref() == Some(&change.path),
            ChangeResult::Shown => {}
            ChangeResult::Refused => refused.push(change.path.clone()),
        }
    }
    match client {
        None => say(&format!(
            "no client named: --client {} adds the server to its configuration",
            Client::flag_values()
        )),
        Some(client) if entry_is_new => {
            say(&format!(
                "next: {}; ahma_mcp doctor checks the rest",
                client.next_step()
            ));
        }
        Some(_) => {}
    }
    if changes.is_empty() {
        say("nothing to do");
    }
    if refused.is_empty() {
        return Ok(());
    }
    let files: Vec<_> = refused.iter().map(|path| path.display().to_string()).collect();
    let left = format!("left unchanged: {}", files.join(", "));
    if is_interactive() {
        // The user declined, which is no failure.
        say(&left);
        return Ok(());
    }
    Err(Failure::user(left).with_hint("--yes makes the changes shown above"))
}

/// A directory inside a project rarely needs a setup of its own, except one with its own language where the project has
/// no setup.
fn refuse_part(whole: &EnclosingProject, part: &Path, packs: &[Pack]) -> Result<(), Failure> {
    let (path, part) = (whole.path.display(), part.display());
    let why = match whole.is_set_up {
        true => format!("{part} is part of {path}, which is already set up"),
        false => format!("{part} is part of the repository {path}"),
    };
    if !whole.is_set_up && packs.iter().any(Pack::is_written_in) {
        say(&format!("note: {why}; to set up all of it, run this in {path}"));
        return Ok(());
    }
    if is_interactive()
        && ask(&format!("{why}.\nSet up this directory on its own? [y/N] "))
            .is_some_and(|answer| is_yes(&answer))
    {
        return Ok(());
    }
    Err(Failure::user(why).with_hint(format!(
        "run this in {path}, or use --sandbox-scope . to set up this directory on its own"
    )))
}

/// `ahma_mcp` if PATH leads to this program, else its path.
fn command_name() -> String {
    const NAME: &str = "ahma_mcp";
    let own = std::env::current_exe().and_then(|path| path.canonicalize()).ok();
    let found = find_on_path(NAME).and_then(|path| path.canonicalize().ok());
    match own {
        Some(own) if found.as_ref() != Some(&own) => own.display().to_string(),
        _ => NAME.to_owned(),
    }
}

/// Asks on a terminal only.
fn asked_client(project: &Path) -> Option<Client> {
    if !is_interactive() {
        return None;
    }
    // A client with a directory in the project is probably in use.
    let is_likely = |client: Client| {
        let file = client.file(project, None);
        file.is_some_and(|file| {
            let has_directory = |parent: &Path| parent != project && parent.exists();
            file.exists() || file.parent().is_some_and(has_directory)
        })
    };
    let likely = Client::all().position(is_likely).map_or(0, |index| index + 1);
    let mut question = String::from("Which client should start the server?\n  0 none\n");
    for (index, client) in Client::all().enumerate() {
        question.push_str(&format!("  {} {}\n", index + 1, client.name()));
    }
    loop {
        let answer = ask(&format!("{question}Number or name [{likely}]: "))?;
        match chosen_client(&answer, likely) {
            Ok(client) => return client,
            Err(()) => question = format!("`{answer}` is not in the list.\n"),
        }
    }
}

/// An empty answer means the number in brackets; 0 means no client.
fn chosen_client(answer: &str, likely: usize) -> Result<Option<Client>, ()> {
    let same = |name: &str| name.eq_ignore_ascii_case(answer);
    let number = match answer {
        "" => Some(likely),
        "none" => Some(0),
        number => number.parse().ok(),
    };
    match number {
        Some(0) => Ok(None),
        Some(number) => Client::all().nth(number - 1).map(Some).ok_or(()),
        None => Client::all()
            .find(|client| same(client.name()) || same(&client.flag()))
            .map(Some)
            .ok_or(()),
    }
}

fn asked_yes() -> bool {
    is_interactive() && ask("Make this change? [y/N] ").is_some_and(|answer| is_yes(&answer))
}

fn is_yes(answer: &str) -> bool {
    matches!(answer, "y" | "Y" | "yes")
}

fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

fn ask(question: &str) -> Option<String> {
    let mut stderr = std::io::stderr().lock();
    stderr
        .write_all(question.as_bytes())
        .and_then(|()| stderr.flush())
        .ok()?;
    let mut answer = String::new();
    // Zero bytes, without even a line end, mean the end of input.
    let length = std::io::stdin().lock().read_line(&mut answer).ok()?;
    (length > 0).then(|| answer.trim().to_owned())
}

/// Changes are the result of the command, so they go to stdout.
pub(super) fn say(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_number_a_name_or_the_one_in_brackets() {
        for (answer, expected) in [
            ("", Ok(Some(Client::Codex))),
            ("1", Ok(Some(Client::VsCode))),
            ("cursor", Ok(Some(Client::Cursor))),
            ("Claude Code", Ok(Some(Client::Claude))),
            ("0", Ok(None)),
            ("none", Ok(None)),
            ("9", Err(())),
            ("n", Err(())),
            ("-1", Err(())),
        ] {
            assert_eq!(chosen_client(answer, 4), expected, "{answer}");
        }
        assert_eq!(chosen_client("", 0), Ok(None));
    }
}
