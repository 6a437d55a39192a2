//! From a tool file as it stands on disk to a tool that makes sense.
//!
//! Walks down the tree of subcommands, carrying what each level inherits, and ends in flat leaves.
//! Every mistake is collected with its JSON pointer; it never stops at the first.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use super::{
    file::{AnnotationsFile, AvailabilityFile, StepFile, SubcommandFile, ToolFile},
    parameter::{Parameters, Place},
    problem::{Mistake, child},
    tool::{
        Action, Annotations, BUILT_IN_TOOLS, CommandTemplate, Leaf, MAX_TIMEOUT_SECONDS, META_PARAMETERS,
        Probe, SequenceTemplate, Skip, Slot, StepTemplate, ToolDef, ValueStyle,
    },
};
use crate::observe::{self, StreamRules};

/// The value of `command` that makes a file a sequence.
const SEQUENCE_COMMAND: &str = "sequence";

/// Clients and model providers agree on names up to this length.
const MAX_NAME_LENGTH: usize = 64;

/// The tool, together with everything that is wrong. It is only good for use when no mistake is an error.
pub(super) fn validate(file: &str, raw: ToolFile) -> (ToolDef, Vec<Mistake>) {
    let mut validation = Validation::default();
    let command = validation.command(&raw.command);
    let prefix = validation.prefix(&raw, &command);
    let is_sequence = raw.command.trim() == SEQUENCE_COMMAND;
    if is_sequence && raw.sequence.is_empty() {
        validation.error(
            child("", "command"),
            "a sequence needs at least one step in `sequence`",
        );
    }
    if is_sequence && !raw.subcommand.is_empty() {
        validation.error(child("", "subcommand"), "a sequence cannot have subcommands");
    }
    if !is_sequence && !raw.sequence.is_empty() {
        let mistake = Mistake::error(
            child("", "sequence"),
            "a sequence of its own needs `\"command\": \"sequence\"`",
        );
        validation
            .mistakes
            .push(mistake.on_key().hint("or move it into a subcommand"));
    }
    let root = Inherited {
        slots: command.iter().cloned().map(Slot::Word).collect(),
        command,
        enabled: true,
        success_codes: vec![0],
        ..Inherited::default()
    };
    validation.level(raw.into_root(prefix.clone()), "", root);
    (
        ToolDef {
            file: file.into(),
            prefix,
            leaves: validation.leaves,
        },
        validation.mistakes,
    )
}

#[derive(Default)]
struct Validation {
    mistakes: Vec<Mistake>,
    leaves: Vec<Arc<Leaf>>,
    /// Where the first part of all names comes from.
    prefix_pointer: String,
    /// Where each leaf's name was first used.
    names: HashMap<String, String>,
}

/// What a level passes down.
#[derive(Clone, Default)]
struct Inherited {
    /// Full name so far; empty above the root.
    name: String,
    command: Vec<String>,
    /// The subcommands so far, as words of the command line.
    path: Vec<String>,
    slots: Vec<Slot>,
    parameters: Parameters,
    enabled: bool,
    synchronous: Option<bool>,
    timeout: Option<Duration>,
    environment: BTreeMap<String, String>,
    success_codes: Vec<i32>,
    annotations: Annotations,
    end_of_options: bool,
    value_style: ValueStyle,
    success_hint: Option<String>,
    stream: Option<Arc<StreamRules>>,
    probes: Vec<Arc<Probe>>,
    install_instructions: Option<String>,
}

impl Validation {
    fn error(&mut self, pointer: impl Into<String>, message: impl Into<String>) {
        self.mistakes.push(Mistake::error(pointer, message));
    }

    fn warning(&mut self, pointer: impl Into<String>, message: impl Into<String>) {
        self.mistakes.push(Mistake::warning(pointer, message));
    }

    /// The words of `command`.
    fn command(&mut self, command: &str) -> Vec<String> {
        let pointer = child("", "command");
        if command.contains('\0') {
            self.error(&pointer, "`command` must not contain a NUL character");
        }
        match shlex::split(command) {
            Some(words) if words.first().is_some_and(|word| !word.is_empty()) => words,
            Some(_) => {
                self.error(pointer, "`command` must name a program");
                Vec::new()
            }
            None => {
                self.error(pointer, "`command` has a quote that is not closed");
                Vec::new()
            }
        }
    }

    fn prefix(&mut self, raw: &ToolFile, command: &[String]) -> String {
        if let Some(name) = &raw.name {
            self.prefix_pointer = child("", "name");
            self.check_name(name, &child("", "name"));
            return name.clone();
        }
        self.prefix_pointer = child("", "command");
        let Some(program) = command.first() else {
            return String::new();
        };
        let file_name = program.rsplit('/').next().unwrap_or(program);
        if raw.command.trim() == SEQUENCE_COMMAND {
            self.error("", "a sequence needs a `name`");
        } else if let Some(message) = name_objection(file_name) {
            let pointer = child("", "command");
            let message = format!("`{file_name}` cannot be the tool's name: it {message}");
            self.mistakes
                .push(Mistake::error(pointer, message).hint("give the tool a `name`"));
        }
        file_name.to_owned()
    }

    fn check_name(&mut self, name: &str, pointer: &str) {
        match name_objection(name) {
            Some(message) if name.is_empty() => self.error(pointer, format!("the name {message}")),
            Some(message) => self.error(pointer, format!("the name `{name}` {message}")),
            None => {}
        }
    }

    fn level(&mut self, raw: SubcommandFile, pointer: &str, inherited: Inherited) {
        let is_root = inherited.name.is_empty();
        let level = self.inherit(&raw, pointer, inherited, is_root);
        if raw.description.trim().is_empty() {
            self.error(
                child(pointer, "description"),
                "`description` must not be empty: the model chooses tools by it",
            );
        }
        if raw.input_schema.is_some() {
            let mistake =
                Mistake::warning(child(pointer, "input_schema"), "`input_schema` is not used").on_key();
            self.mistakes
                .push(mistake.hint("the schema is made from `options` and `positional_args`"));
        }
        if raw.step_delay_ms.is_some() && raw.sequence.is_empty() {
            self.warning(
                child(pointer, "step_delay_ms"),
                "`step_delay_ms` has no effect without a `sequence`",
            );
        }
        if !raw.subcommand.is_empty() {
            self.group(raw, pointer, level, is_root);
        } else if !raw.sequence.is_empty() {
            self.sequence(raw, pointer, level);
        } else {
            self.command_leaf(raw, pointer, level);
        }
    }

    /// Takes over from the level above what this level does not say itself.
    fn inherit(
        &mut self,
        raw: &SubcommandFile,
        pointer: &str,
        mut level: Inherited,
        is_root: bool,
    ) -> Inherited {
        if is_root {
            level.name = raw.name.clone();
        } else if raw.name == "default" {
            // The parent itself: no word of its own.
        } else {
            if raw.name.contains('_') {
                let message = format!(
                    "the subcommand name `{}` must not contain an underscore",
                    raw.name
                );
                let suggestion = format!(
                    "underscores join the parts of a tool's name; write `{}`",
                    raw.name.replace('_', "-")
                );
                self.mistakes
                    .push(Mistake::error(child(pointer, "name"), message).hint(suggestion));
            } else {
                self.check_name(&raw.name, &child(pointer, "name"));
            }
            level.name = format!("{}_{}", level.name, raw.name);
            level.path.push(raw.name.clone());
            level.slots.push(Slot::Word(raw.name.clone()));
        }
        level.enabled &= raw.enabled.unwrap_or(true);
        level.synchronous = self.synchronous(raw, pointer).or(level.synchronous);
        level.timeout = self.timeout(raw, pointer).or(level.timeout);
        level.environment.extend(self.environment(raw, pointer));
        if !raw.exit_codes.is_empty() {
            level.success_codes = raw.exit_codes.iter().copied().chain([0]).map(i32::from).collect();
            level.success_codes.sort_unstable();
            level.success_codes.dedup();
        }
        level.annotations = self.annotations(
            &raw.annotations,
            &child(pointer, "annotations"),
            level.annotations,
        );
        level.end_of_options = raw.end_of_options.unwrap_or(level.end_of_options);
        level.value_style = raw.value_style.unwrap_or(level.value_style);
        level.success_hint = raw.success_hint.clone().or(level.success_hint);
        level.install_instructions = raw.install_instructions.clone().or(level.install_instructions);
        if let Some(block) = &raw.stream {
            let pointer = child(pointer, "stream");
            match observe::compile(block) {
                Ok(rules) => level.stream = Some(Arc::new(rules)),
                Err(problems) => {
                    for problem in problems {
                        self.error(format!("{pointer}{}", problem.pointer), problem.message);
                    }
                }
            }
        }
        if let Some(check) = &raw.availability_check {
            let probe = self.probe(check, &child(pointer, "availability_check"), &level);
            level.probes.extend(probe.map(Arc::new));
        }
        level
    }

    fn group(&mut self, raw: SubcommandFile, pointer: &str, mut level: Inherited, is_root: bool) {
        if !raw.positional_args.is_empty() {
            let owner = if is_root { "a tool" } else { "a subcommand" };
            let message = format!("{owner} with subcommands cannot have positional arguments of its own");
            let mistake = Mistake::error(child(pointer, "positional_args"), message).on_key();
            self.mistakes.push(
                mistake.hint("give them to a subcommand; one named `default` stands for the parent itself"),
            );
        }
        if !raw.sequence.is_empty() && !is_root {
            self.error(
                child(pointer, "sequence"),
                "a subcommand has either a `sequence` or a `subcommand` list",
            );
        }
        let options = child(pointer, "options");
        level.slots.extend(level.parameters.add(
            raw.options,
            &options,
            Place::Option(level.value_style),
            &mut self.mistakes,
        ));
        for (index, subcommand) in raw.subcommand.into_iter().enumerate() {
            let pointer = child(&child(pointer, "subcommand"), index);
            self.level(subcommand, &pointer, level.clone());
        }
    }

    fn command_leaf(&mut self, raw: SubcommandFile, pointer: &str, mut level: Inherited) {
        let (options, positionals) = (child(pointer, "options"), child(pointer, "positional_args"));
        level.slots.extend(level.parameters.add(
            raw.options,
            &options,
            Place::Option(level.value_style),
            &mut self.mistakes,
        ));
        level.slots.push(Slot::StreamArguments);
        let parameters = level.parameters.add(
            raw.positional_args,
            &positionals,
            Place::Positional,
            &mut self.mistakes,
        );
        level.slots.extend(parameters);
        let template = CommandTemplate {
            slots: std::mem::take(&mut level.slots),
            environment: std::mem::take(&mut level.environment),
            success_codes: std::mem::take(&mut level.success_codes),
            end_of_options: level.end_of_options,
            stream: level.stream.take(),
            success_hint: level.success_hint.take(),
        };
        self.leaf(raw.description, pointer, level, Action::Command(template));
    }

    fn sequence(&mut self, raw: SubcommandFile, pointer: &str, level: Inherited) {
        for (field, given) in [
            ("options", &raw.options),
            ("positional_args", &raw.positional_args),
        ] {
            if !given.is_empty() {
                let message = format!("a sequence takes no `{field}` of its own");
                let mistake = Mistake::error(child(pointer, field), message).on_key();
                self.mistakes.push(mistake.hint("give `args` to its steps"));
            }
        }
        let steps = child(pointer, "sequence");
        let template = SequenceTemplate {
            steps: raw
                .sequence
                .into_iter()
                .enumerate()
                .map(|(index, step)| self.step(step, child(&steps, index)))
                .collect(),
            delay: Duration::from_millis(raw.step_delay_ms.unwrap_or_default()),
        };
        self.leaf(raw.description, pointer, level, Action::Sequence(template));
    }

    fn step(&mut self, raw: StepFile, pointer: String) -> StepTemplate {
        for name in META_PARAMETERS {
            if raw.args.contains_key(name) {
                let pointer = child(&child(&pointer, "args"), name);
                let mistake = Mistake::error(pointer, format!("a step cannot set `{name}`")).on_key();
                self.mistakes
                    .push(mistake.hint("it is set for the whole sequence by the call"));
            }
        }
        let skip = match (raw.skip_if_file_exists, raw.skip_if_file_missing) {
            (Some(_), Some(_)) => {
                self.error(
                    &pointer,
                    "a step has either `skip_if_file_exists` or `skip_if_file_missing`",
                );
                None
            }
            (Some(path), None) => Some(Skip::IfFileExists(path)),
            (None, Some(path)) => Some(Skip::IfFileMissing(path)),
            (None, None) => None,
        };
        let subcommand = raw.subcommand.filter(|subcommand| subcommand != "default");
        let (label, target) = match &subcommand {
            Some(subcommand) => (
                format!("{} {}", raw.tool, subcommand.replace('_', " ")),
                // Nested subcommands may be written with spaces, as on the command line.
                format!(
                    "{}_{}",
                    raw.tool,
                    subcommand.split_whitespace().collect::<Vec<_>>().join("_")
                ),
            ),
            None => (raw.tool.clone(), raw.tool),
        };
        StepTemplate {
            pointer,
            label,
            target,
            arguments: raw.args,
            description: raw.description,
            skip,
        }
    }

    fn leaf(&mut self, description: String, pointer: &str, level: Inherited, action: Action) {
        // Without a subcommand the name stands in the root, and so do its mistakes.
        let name_pointer = if pointer.is_empty() {
            String::new()
        } else {
            child(pointer, "name")
        };
        let name = level.name;
        if name.len() > MAX_NAME_LENGTH {
            let message = format!(
                "the tool's name `{name}` is {} characters long; {MAX_NAME_LENGTH} are allowed",
                name.len()
            );
            self.error(&name_pointer, message);
        }
        if BUILT_IN_TOOLS.contains(&name.as_str()) {
            let mistake = Mistake::error(&name_pointer, format!("`{name}` is the name of a built-in tool"));
            self.mistakes.push(mistake.hint("choose another `name`"));
        }
        match self.names.get(&name) {
            Some(first) => {
                let message = format!("the tool `{name}` is defined twice; the other one is at `{first}`");
                self.error(&name_pointer, message);
            }
            None => {
                self.names.insert(name.clone(), pointer.to_owned());
            }
        }
        self.leaves.push(Arc::new(Leaf {
            name,
            pointer: pointer.to_owned(),
            name_pointer,
            description,
            action,
            synchronous: level.synchronous,
            timeout: level.timeout,
            annotations: level.annotations,
            enabled: level.enabled,
            probes: level.probes,
            install_instructions: level.install_instructions,
        }));
    }

    fn synchronous(&mut self, raw: &SubcommandFile, pointer: &str) -> Option<bool> {
        match (raw.synchronous, raw.force_synchronous) {
            (Some(new), Some(old)) if new != old => {
                let pointer = child(pointer, "force_synchronous");
                self.error(
                    pointer,
                    "`force_synchronous` is the older spelling of `synchronous`, and says the opposite",
                );
                None
            }
            (new, old) => new.or(old),
        }
    }

    fn timeout(&mut self, raw: &SubcommandFile, pointer: &str) -> Option<Duration> {
        let seconds = raw.timeout_seconds?;
        if !(1..=MAX_TIMEOUT_SECONDS).contains(&seconds) {
            let message = format!(
                "`timeout_seconds` must be between 1 and {MAX_TIMEOUT_SECONDS} (a week), not {seconds}"
            );
            self.error(child(pointer, "timeout_seconds"), message);
            return None;
        }
        Some(Duration::from_secs(seconds))
    }

    fn environment(&mut self, raw: &SubcommandFile, pointer: &str) -> BTreeMap<String, String> {
        let pointer = child(pointer, "env");
        for (name, value) in &raw.env {
            let pointer = child(&pointer, name);
            if name.is_empty() || name.contains(['=', '\0']) {
                self.mistakes.push(
                    Mistake::error(&pointer, format!("`{name}` cannot be the name of a variable")).on_key(),
                );
            }
            if value.contains('\0') {
                self.error(pointer, "a variable must not contain a NUL character");
            }
        }
        raw.env.clone()
    }

    fn annotations(&mut self, raw: &AnnotationsFile, pointer: &str, inherited: Annotations) -> Annotations {
        if raw.read_only == Some(true) && raw.destructive == Some(true) {
            self.error(pointer, "a tool cannot be both `readOnly` and `destructive`");
        }
        // What a level says itself settles the opposite that it would inherit.
        let read_only = raw
            .read_only
            .or(inherited.read_only.filter(|_| raw.destructive != Some(true)));
        let destructive = raw
            .destructive
            .or(inherited.destructive.filter(|_| raw.read_only != Some(true)));
        Annotations {
            title: raw.title.clone(),
            read_only,
            destructive,
            idempotent: raw.idempotent.or(inherited.idempotent),
            open_world: raw.open_world.or(inherited.open_world),
        }
    }

    fn probe(&mut self, check: &AvailabilityFile, pointer: &str, level: &Inherited) -> Option<Probe> {
        let parts = match check {
            AvailabilityFile::Line(line) => {
                let argv = shlex::split(line).filter(|words| !words.is_empty());
                if argv.is_none() {
                    self.error(
                        pointer,
                        "`availability_check` must be a command line such as `git --version`",
                    );
                }
                return Some(Probe {
                    argv: argv?,
                    directory: None,
                    success_codes: vec![0],
                });
            }
            AvailabilityFile::Parts(parts) => parts,
        };
        let mut argv = match &parts.command {
            Some(command) => {
                let words = shlex::split(command).filter(|words| !words.is_empty());
                if words.is_none() {
                    self.error(child(pointer, "command"), "`command` must name a program");
                }
                words?
            }
            None if parts.skip_subcommand_args == Some(true) => level.command.clone(),
            None => [level.command.as_slice(), level.path.as_slice()].concat(),
        };
        argv.extend(parts.args.iter().cloned());
        let success_codes = match parts.success_exit_codes.as_slice() {
            [] => vec![0],
            codes => codes.iter().copied().map(i32::from).collect(),
        };
        Some(Probe {
            argv,
            directory: parts.working_directory.clone(),
            success_codes,
        })
    }
}

/// Why `name` cannot be a name, if so.
fn name_objection(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("is empty".into());
    }
    if name.len() > MAX_NAME_LENGTH {
        return Some(format!(
            "is {} characters long; {MAX_NAME_LENGTH} are allowed",
            name.len()
        ));
    }
    let bad = name
        .chars()
        .find(|letter| !(letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-')))?;
    Some(format!(
        "contains {bad:?}; letters, digits, `_` and `-` are allowed"
    ))
}
