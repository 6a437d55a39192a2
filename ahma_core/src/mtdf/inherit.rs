//! Settings that a level of a tool file passes down to its subcommands.

use std::{
    collections::BTreeMap,
    path::{Component, Path},
    sync::Arc,
    time::Duration,
};

use regex::Regex;

use super::{
    ExitCodes, ExitMeaning,
    file::{
        AvailabilityFile, AvailabilityParts, ExitCodesFile, ExitMeaningFile, ExitWord, PortFile, ReadyFile,
        ReadyPortFile, SubcommandFile,
    },
    name,
    parameter::Parameters,
    problem::{Mistake, child},
    tool::{
        Annotations, AvailabilityCheck, AvailabilityCommand, Level, MAX_TIMEOUT_SECONDS, ReadyPort,
        ReadySign, Slot, StopSignal, ValueStyle,
    },
};
use crate::observe::{self, ArgumentReference, StreamRules, stream_block::StreamBlock};

/// A subcommand of this name stands for its parent.
const PARENT_ITSELF: &str = "default";

/// Everything that holds at one level.
#[derive(Clone, Default)]
pub(super) struct Inherited {
    /// Full name so far; empty above the root.
    pub(super) name: String,
    pub(super) command: Vec<String>,
    /// The subcommands so far, as words of the command line.
    path: Vec<String>,
    pub(super) slots: Vec<Slot>,
    pub(super) parameters: Parameters,
    pub(super) enabled: bool,
    pub(super) level: Level,
    pub(super) synchronous: Option<bool>,
    pub(super) timeout: Option<Duration>,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) path_dirs: Vec<String>,
    pub(super) exit_codes: ExitCodes,
    pub(super) annotations: Annotations,
    pub(super) end_of_options: bool,
    pub(super) value_style: ValueStyle,
    pub(super) stop_signal: StopSignal,
    pub(super) success_hint: Option<String>,
    pub(super) failure_hint: Option<String>,
    pub(super) ready: Option<ReadySign>,
    pub(super) exclusive: Vec<Vec<String>>,
    pub(super) stream: Option<Arc<StreamRules>>,
    /// The arguments that the rules name, also where something else is wrong with them.
    pub(super) stream_references: Vec<ArgumentReference>,
    /// Pointer to the level that has the rules.
    pub(super) stream_pointer: String,
    pub(super) probes: Vec<Arc<AvailabilityCheck>>,
    pub(super) install_instructions: Option<String>,
}

impl Inherited {
    /// Settings above the root of a tool.
    pub(super) fn above(command: Vec<String>) -> Self {
        let nothing = Self {
            enabled: true,
            ..Self::default()
        };
        nothing.with_command(command)
    }

    /// The same for a tool with this command. Options that are there already come after it.
    pub(super) fn with_command(mut self, command: Vec<String>) -> Self {
        self.slots.splice(..0, command.iter().cloned().map(Slot::Word));
        self.command = command;
        self
    }

    /// Settings at the level `raw`: its own, and for the rest those from above.
    pub(super) fn at(mut self, raw: &SubcommandFile, pointer: &str, mistakes: &mut Vec<Mistake>) -> Self {
        let mut level = LevelReader {
            raw,
            pointer,
            mistakes,
        };
        if self.name.is_empty() {
            self.name = raw.name.clone();
        } else if raw.name != PARENT_ITSELF {
            level.check_name();
            self.name = format!("{}_{}", self.name, raw.name);
            self.path.push(raw.name.clone());
            self.slots.push(Slot::Word(raw.name.clone()));
        }
        self.enabled &= raw.enabled.unwrap_or(true);
        self.level = raw.level.unwrap_or(self.level);
        self.synchronous = level.synchronous().or(self.synchronous);
        self.timeout = level.timeout().or(self.timeout);
        self.environment.extend(level.environment());
        self.path_dirs = level.path_dirs().unwrap_or(self.path_dirs);
        self.exit_codes = level.exit_codes().unwrap_or(self.exit_codes);
        self.annotations = level.annotations(&self.annotations);
        self.end_of_options = raw.end_of_options.unwrap_or(self.end_of_options);
        self.value_style = raw.value_style.unwrap_or(self.value_style);
        self.stop_signal = raw.stop_signal.unwrap_or(self.stop_signal);
        self.success_hint = raw.success_hint.clone().or(self.success_hint);
        self.install_instructions = raw.install_instructions.clone().or(self.install_instructions);
        self.failure_hint = raw.failure_hint.clone().or(self.failure_hint);
        self.ready = level.ready().or(self.ready);
        self.exclusive.extend(raw.exclusive.iter().cloned());
        if let Some(block) = &raw.stream {
            self.stream = level.stream(block);
            self.stream_references = match &self.stream {
                Some(rules) => rules.argument_references().to_vec(),
                None => observe::argument_references(block),
            };
            self.stream_pointer = child(pointer, "stream");
        }
        let probe = level.availability_command(&self);
        self.probes
            .extend(probe.map(AvailabilityCheck::Run).map(Arc::new));
        self
    }

    /// Requirements of a command of this level: those of the file, or else the program. A program given by its path is
    /// not looked for, because that depends on the working directory, and neither is one on a PATH of the file's own.
    pub(super) fn needs(&self) -> Vec<Arc<AvailabilityCheck>> {
        let program = self.command.first().filter(|program| !program.contains('/'));
        match program {
            Some(program) if self.probes.is_empty() && !self.environment.contains_key("PATH") => {
                vec![Arc::new(AvailabilityCheck::Find {
                    program: program.clone(),
                    path_dirs: self.path_dirs.clone(),
                })]
            }
            _ => self.probes.clone(),
        }
    }
}

/// One level and where to complain about it.
struct LevelReader<'a> {
    raw: &'a SubcommandFile,
    pointer: &'a str,
    mistakes: &'a mut Vec<Mistake>,
}

impl LevelReader<'_> {
    fn error(&mut self, field: &str, message: impl Into<String>) {
        let pointer = format!("{}/{field}", self.pointer);
        self.mistakes.push(Mistake::error(pointer, message));
    }

    fn check_name(&mut self) {
        let name = &self.raw.name;
        if name.contains('_') {
            let message = format!("the subcommand name `{name}` must not contain an underscore");
            let suggestion = name.replace('_', "-");
            let hint = format!("underscores join the parts of a tool's name; write `{suggestion}`");
            let mistake = Mistake::error(child(self.pointer, "name"), message).hint(hint);
            self.mistakes.push(mistake);
        } else if let Some(message) = name::complaint(name) {
            self.error("name", message);
        }
    }

    fn synchronous(&mut self) -> Option<bool> {
        match (self.raw.synchronous, self.raw.force_synchronous) {
            (Some(new), Some(old)) if new != old => {
                let message =
                    "`force_synchronous` is the older spelling of `synchronous`, and says the opposite";
                self.error("force_synchronous", message);
                None
            }
            (new, old) => new.or(old),
        }
    }

    fn timeout(&mut self) -> Option<Duration> {
        let seconds = self.raw.timeout_seconds?;
        if (1..=MAX_TIMEOUT_SECONDS).contains(&seconds) {
            return Some(Duration::from_secs(seconds));
        }
        let message = format!("must be between 1 and {MAX_TIMEOUT_SECONDS}, not {seconds}");
        self.error("timeout_seconds", message);
        None
    }

    fn environment(&mut self) -> BTreeMap<String, String> {
        for problem in observe::environment_problems(&self.raw.env) {
            let pointer = format!("{}{}", self.pointer, problem.pointer);
            self.mistakes
                .push(Mistake::error(pointer, problem.message).on_key());
        }
        self.raw.env.clone()
    }

    fn path_dirs(&mut self) -> Option<Vec<String>> {
        let pointer = child(self.pointer, "path_dirs");
        for (index, directory) in self.raw.path_dirs.iter().enumerate() {
            let path = Path::new(directory);
            let is_below = path.components().all(|part| matches!(part, Component::Normal(_)));
            if directory.is_empty() || !is_below || directory.contains([':', '\0']) {
                let message =
                    format!("`{directory}` must be a directory below the scope, such as `.venv/bin`");
                self.mistakes
                    .push(Mistake::error(child(&pointer, index), message));
            }
        }
        (!self.raw.path_dirs.is_empty()).then(|| self.raw.path_dirs.clone())
    }

    fn exit_codes(&mut self) -> Option<ExitCodes> {
        let meanings = match self.raw.exit_codes.as_ref()? {
            ExitCodesFile::Successes(codes) if codes.is_empty() => return None,
            ExitCodesFile::Successes(codes) => {
                let codes = codes.iter().map(|code| (i32::from(*code), ExitMeaning::Success));
                return Some(ExitCodes::new(codes));
            }
            ExitCodesFile::Meanings(meanings) => meanings,
        };
        let mut named = Vec::new();
        for (code, meaning) in meanings {
            let meaning = match meaning {
                ExitMeaningFile::Word(ExitWord::Success) => ExitMeaning::Success,
                ExitMeaningFile::Word(ExitWord::Findings) => ExitMeaning::Findings,
                ExitMeaningFile::Failure(failure) => ExitMeaning::Failure(failure.failure.clone()),
            };
            let message = match code.parse::<u8>() {
                Ok(0) if meaning != ExitMeaning::Success => "0 is always a success".to_owned(),
                Ok(code) => {
                    named.push((i32::from(code), meaning));
                    continue;
                }
                Err(_) => format!("`{code}` is not an exit code; exit codes are numbers from 0 to 255"),
            };
            let pointer = child(&child(self.pointer, "exit_codes"), code);
            self.mistakes.push(Mistake::error(pointer, message).on_key());
        }
        Some(ExitCodes::new(named))
    }

    fn ready(&mut self) -> Option<ReadySign> {
        match self.raw.ready.as_ref()? {
            ReadyFile::Line(text) => match Regex::new(text) {
                Ok(pattern) => Some(ReadySign::Line(pattern)),
                Err(error) => {
                    let error = error.to_string();
                    let reason = error
                        .lines()
                        .last()
                        .unwrap_or_default()
                        .trim_start_matches("error: ");
                    self.error("ready", format!("bad regular expression: {reason}"));
                    None
                }
            },
            ReadyFile::Port(ReadyPortFile { port }) => match port {
                PortFile::Number(number) => Some(ReadySign::Port(ReadyPort::Number(*number))),
                PortFile::Argument(text) => {
                    let name = text.strip_prefix("{$").and_then(|name| name.strip_suffix('}'));
                    if name.is_none() {
                        let message = format!("`{text}` must be a number or name an argument: `{{$port}}`");
                        self.error("ready/port", message);
                    }
                    name.map(|name| ReadySign::Port(ReadyPort::Argument(name.to_owned())))
                }
            },
        }
    }

    fn annotations(&mut self, inherited: &Annotations) -> Annotations {
        let raw = &self.raw.annotations;
        if raw.read_only == Some(true) && raw.destructive == Some(true) {
            self.error(
                "annotations",
                "a tool cannot be both `readOnly` and `destructive`",
            );
        }
        // What a level says itself settles the opposite that it would inherit.
        let inherited_read_only = inherited.read_only.filter(|_| raw.destructive != Some(true));
        let inherited_destructive = inherited.destructive.filter(|_| raw.read_only != Some(true));
        Annotations {
            title: raw.title.clone(),
            read_only: raw.read_only.or(inherited_read_only),
            destructive: raw.destructive.or(inherited_destructive),
            idempotent: raw.idempotent.or(inherited.idempotent),
            open_world: raw.open_world.or(inherited.open_world),
        }
    }

    fn stream(&mut self, block: &StreamBlock) -> Option<Arc<StreamRules>> {
        match observe::compile(block) {
            Ok(rules) => Some(Arc::new(rules)),
            Err(problems) => {
                let pointer = child(self.pointer, "stream");
                let mistakes = problems
                    .into_iter()
                    .map(|problem| Mistake::error(format!("{pointer}{}", problem.pointer), problem.message));
                self.mistakes.extend(mistakes);
                None
            }
        }
    }

    fn availability_command(&mut self, inherited: &Inherited) -> Option<AvailabilityCommand> {
        let line = |line: &String| AvailabilityParts {
            command: Some(line.clone()),
            ..AvailabilityParts::default()
        };
        let (parts, field, message) = match self.raw.availability_check.as_ref()? {
            AvailabilityFile::Line(text) => (
                &line(text),
                "availability_check",
                "`availability_check` must be a command line such as `git --version`",
            ),
            AvailabilityFile::Parts(parts) => (
                parts,
                "availability_check/command",
                "`command` must name a program",
            ),
        };
        let mut argv = match &parts.command {
            Some(command) => {
                let argv = words(command);
                if argv.is_none() {
                    let pointer = format!("{}/{field}", self.pointer);
                    self.mistakes.push(Mistake::error(pointer, message));
                }
                argv?
            }
            None if inherited.command.is_empty() => {
                let message = "the check needs a `command`, because the file has none for all its tools";
                self.error("availability_check", message);
                return None;
            }
            None if parts.skip_subcommand_args == Some(true) => inherited.command.clone(),
            None => [inherited.command.as_slice(), &inherited.path].concat(),
        };
        argv.extend(parts.args.iter().cloned());
        let success_codes = match parts.success_exit_codes.as_slice() {
            [] => vec![0],
            codes => codes.iter().copied().map(i32::from).collect(),
        };
        Some(AvailabilityCommand {
            argv,
            path_dirs: inherited.path_dirs.clone(),
            environment: inherited.environment.clone(),
            directory: parts.working_directory.clone(),
            success_codes,
        })
    }
}

/// The words of a command line, if there are any.
fn words(line: &str) -> Option<Vec<String>> {
    shlex::split(line).filter(|words| words.first().is_some_and(|word| !word.is_empty()))
}
