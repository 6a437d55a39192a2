//! From the arguments to the command behind the profile.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use test_support::{Profile, Subject};

use crate::{monitor, rules, view};

/// Why the command was not started.
pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) message: String,
}

const USAGE: u8 = 64;
const BAD_PROFILE: u8 = 65;
const NOT_PERMITTED: u8 = 71;

/// The names of the two services that mark an operation.
const ALLOWED_MARK: &str = "MARK_ALLOWED";
const DENIED_MARK: &str = "MARK_DENIED";

/// The mark of a process whose profile has none; it is in a sandbox all the same.
const UNMARKED: u64 = 1;

/// Becomes the command. Returns only if that failed.
pub(crate) fn run(arguments: impl Iterator<Item = OsString>) -> Failure {
    match try_run(arguments) {
        Ok(never) => match never {},
        Err(failure) => failure,
    }
}

fn try_run(arguments: impl Iterator<Item = OsString>) -> Result<std::convert::Infallible, Failure> {
    let failed = |code: u8| move |message: String| Failure { code, message };
    let Arguments {
        profile,
        parameters,
        command,
    } = Arguments::read(arguments).map_err(failed(USAGE))?;
    let profile = Profile::read(&profile, &parameters).map_err(failed(BAD_PROFILE))?;
    if getrlimit(Resource::Rttime).maximum.is_some() {
        return Err(failed(NOT_PERMITTED)(
            "sandbox_apply: Operation not permitted".into(),
        ));
    }
    let mark = mark(&profile, &parameters);
    confine(profile, mark).map_err(|error| failed(NOT_PERMITTED)(format!("sandbox_apply: {error}")))?;
    let [program, words @ ..] = command.as_slice() else {
        return Err(failed(USAGE)("no command".into()));
    };
    let error = Command::new(program).args(words).exec();
    let name = program.to_string_lossy();
    Err(failed(NOT_PERMITTED)(format!(
        "execvp() of '{name}' failed: {error}"
    )))
}

fn confine(profile: Profile, mark: u64) -> io::Result<()> {
    let ruleset = rules::Rules::of(&profile);
    view::enter(&profile)?;
    let monitor = monitor::start(profile)?;
    setrlimit(
        Resource::Rttime,
        Rlimit {
            current: Some(mark),
            maximum: Some(mark),
        },
    )?;
    view::drop_privileges()?;
    ruleset.enforce()?;
    monitor.watch_this_process()
}

/// The number of the operation, if the profile allows the one service and denies the other.
fn mark(profile: &Profile, parameters: &BTreeMap<String, String>) -> u64 {
    let may_look_up = |parameter| {
        let name: &String = parameters.get(parameter)?;
        Some(profile.allows("mach-lookup", Subject::Service(name)))
    };
    let number = || {
        let digits = parameters.get(ALLOWED_MARK)?.split('.').nth(3)?;
        u64::from_str_radix(digits, 16).ok()
    };
    match (may_look_up(ALLOWED_MARK), may_look_up(DENIED_MARK)) {
        (Some(true), Some(false)) => number().unwrap_or(UNMARKED),
        _ => UNMARKED,
    }
}

struct Arguments {
    profile: String,
    parameters: BTreeMap<String, String>,
    command: Vec<OsString>,
}

impl Arguments {
    fn read(mut arguments: impl Iterator<Item = OsString>) -> Result<Self, String> {
        let mut profile = None;
        let mut parameters = BTreeMap::new();
        while let Some(argument) = arguments.next() {
            let mut value = || -> Result<String, String> {
                let value = arguments.next().ok_or("an option without its value")?;
                value
                    .into_string()
                    .map_err(|value| format!("{value:?} is not UTF-8"))
            };
            match argument.to_str() {
                Some("-p") => profile = Some(value()?),
                Some("-f") => {
                    let path = value()?;
                    let text = std::fs::read_to_string(&path);
                    profile = Some(text.map_err(|error| format!("{path}: {error}"))?);
                }
                Some("-D") => {
                    let value = value()?;
                    let (key, value) = value.split_once('=').ok_or("-D takes KEY=VALUE")?;
                    parameters.insert(key.to_owned(), value.to_owned());
                }
                _ => {
                    let profile = profile.ok_or("no profile")?;
                    let command = std::iter::once(argument).chain(arguments).collect();
                    return Ok(Self {
                        profile,
                        parameters,
                        command,
                    });
                }
            }
        }
        Err("no command".into())
    }
}

/// Directories that are links into `/private` on macOS.
const LINKED: [&str; 3] = ["/etc", "/tmp", "/var"];

/// The path as it would be on macOS.
pub(crate) fn there(path: &Path) -> PathBuf {
    let is_linked = LINKED.iter().any(|link| path.starts_with(link));
    match path.strip_prefix("/") {
        Ok(below) if is_linked => Path::new("/private").join(below),
        _ => path.to_owned(),
    }
}

/// The path as it is here.
pub(crate) fn here(path: &Path) -> PathBuf {
    let below = path
        .strip_prefix("/private")
        .map(|below| Path::new("/").join(below));
    match below {
        Ok(below) if LINKED.iter().any(|link| below.starts_with(link)) => below,
        _ => path.to_owned(),
    }
}
