//! `ahma_mcp init`: tool files for what a project is written in, and the entry in its client's configuration.
//!
//! First all changes are worked out, then each is made. A file that exists is changed only after its difference was
//! shown and agreed to; other entries and comments in it stay. Tool files that exist are the user's own, and are changed
//! only if he asks for that. A second run finds nothing to do.

mod change;
mod entry;
mod tool_files;

use std::{
    io::{BufRead as _, IsTerminal as _, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use super::{
    clients::Client,
    exit::{Exit, Failure},
    given::GivenFlags,
    project::{self, EnclosingProject, Language},
    settings::{Settings, Surroundings},
    tasks::InitArgs,
};
use change::Made;
pub(super) use entry::find as find_entry;
use tool_files::Existing;

pub(super) fn run(
    wishes: &InitArgs,
    settings: &Settings,
    flags: &GivenFlags,
    around: &Surroundings,
) -> Result<ExitCode, Failure> {
    let project = &settings.sandbox.scope;
    let languages = project::languages(project)?;
    let names: Vec<_> = languages.iter().map(|language| language.name.as_str()).collect();
    if let Some(whole) = &settings.enclosing {
        refuse_part(whole, project, &languages)?;
    }
    say(&format!("{}: {}", project.display(), names.join(", ")));

    if !languages.iter().any(Language::is_written_in) {
        say(&format!(
            "note: what it is written in is not known here; tool files come for {}\n\
             note: sandboxed_shell runs any command, and a JSON file in {} makes a tool of a program",
            project::known_languages()?.join(", "),
            settings.tools_dir.display()
        ));
    }
    let existing = match wishes.update_tools {
        true => Existing::Update,
        false => Existing::Keep,
    };
    let mut changes = tool_files::changes(&languages, &settings.tools_dir, existing)?;
    let client = match wishes.client {
        Some(client) => Some(client.into()),
        None => asked_client(project),
    };
    if let Some(client) = client {
        let flags = client.flags(flags, project, &around.working_directory);
        let entry = client.entry(&command_name(), project, flags);
        changes.extend(entry::change(client, project, around, &entry)?);
    }

    let entry_file = client.and_then(|client| client.file(project, around.home.as_deref()));
    let mut refused = Vec::new();
    let mut entry_is_new = false;
    for change in &changes {
        match change.make(wishes.dry_run, |_| wishes.yes || asked_yes())? {
            Made::Written => entry_is_new |= entry_file.as_ref() == Some(&change.path),
            Made::Shown => {}
            Made::Refused => refused.push(change.path.clone()),
        }
    }
    match client {
        None => say(
            "no client was named: --client vscode|cursor|claude|codex|windsurf adds the server to its configuration",
        ),
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
        return Ok(Exit::Success.into());
    }
    let files: Vec<_> = refused.iter().map(|path| path.display().to_string()).collect();
    let left = format!("left unchanged: {}", files.join(", "));
    if is_interactive() {
        // Somebody said no, and got what he asked for.
        say(&left);
        return Ok(Exit::Success.into());
    }
    Err(Failure::user(left).with_hint("--yes makes the changes that are shown above"))
}

/// A part of a project hardly ever wants a set-up of its own. One that is written in something of its own may, if the
/// whole has none.
fn refuse_part(whole: &EnclosingProject, part: &Path, languages: &[Language]) -> Result<(), Failure> {
    let (path, part) = (whole.path.display(), part.display());
    let why = match whole.is_set_up {
        true => format!("{part} is a part of {path}, which is set up already"),
        false => format!("{part} is a part of the repository {path}"),
    };
    if !whole.is_set_up && languages.iter().any(Language::is_written_in) {
        say(&format!("note: {why}; to set all of it up, start in {path}"));
        return Ok(());
    }
    if is_interactive()
        && ask(&format!("{why}.\nSet this directory up by itself? [y/N] "))
            .is_some_and(|answer| is_yes(&answer))
    {
        return Ok(());
    }
    Err(Failure::user(why).with_hint(format!(
        "start in {path}; --sandbox-scope . sets this directory up by itself"
    )))
}

/// `ahma_mcp` if that is what PATH leads to, else the path of this program.
fn command_name() -> String {
    const NAME: &str = "ahma_mcp";
    let own = std::env::current_exe().and_then(|path| path.canonicalize()).ok();
    let found = find_on_path(NAME).and_then(|path| path.canonicalize().ok());
    match own {
        Some(own) if found.as_ref() != Some(&own) => own.display().to_string(),
        _ => NAME.to_owned(),
    }
}

/// The first executable of that name in a directory of PATH.
pub(super) fn find_on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .find(|candidate| {
            candidate.is_file() && rustix::fs::access(candidate, rustix::fs::Access::EXEC_OK).is_ok()
        })
}

/// Asks on a terminal; elsewhere nobody can answer.
fn asked_client(project: &Path) -> Option<Client> {
    if !is_interactive() {
        return None;
    }
    // A client whose directory is there is probably the one in use.
    let likely = Client::ALL.into_iter().position(|client| {
        client.file(project, None).is_some_and(|file| {
            file.exists()
                || file
                    .parent()
                    .is_some_and(|parent| parent != project && parent.exists())
        })
    });
    let mut question = String::from("Which client shall start the server?\n  0 none\n");
    for (index, client) in Client::ALL.into_iter().enumerate() {
        question.push_str(&format!("  {} {}\n", index + 1, client.name()));
    }
    let likely = likely.map_or(0, |index| index + 1);
    loop {
        let answer = ask(&format!("{question}Number or name [{likely}]: "))?;
        match chosen_client(&answer, likely) {
            Ok(client) => return client,
            Err(()) => question = format!("`{answer}` is none of them.\n"),
        }
    }
}

/// What an answer means: nothing is the number in brackets, and 0 is no client.
fn chosen_client(answer: &str, likely: usize) -> Result<Option<Client>, ()> {
    let same = |name: &str| name.eq_ignore_ascii_case(answer);
    let by_name = || {
        let clients = Client::ALL.into_iter();
        clients
            .filter(|client| same(client.name()) || same(client.flag()))
            .map(Some)
            .next()
    };
    let number = match answer {
        "" => Some(likely),
        "none" => Some(0),
        number => number.parse().ok(),
    };
    match number {
        Some(0) => Ok(None),
        Some(number) => Client::ALL.get(number - 1).copied().map(Some).ok_or(()),
        None => by_name().ok_or(()),
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
    // Nothing at all, not even the end of a line, is the end of the input.
    let length = std::io::stdin().lock().read_line(&mut answer).ok()?;
    (length > 0).then(|| answer.trim().to_owned())
}

/// What was done is what the command is for, so it goes to stdout.
fn say(line: &str) {
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
