//! From a tool file as it stands on disk to a tool that makes sense.
//!
//! Walks down the tree of subcommands, carrying what each level inherits, and ends in flat leaves.
//! Every mistake is collected with its JSON pointer; it never stops at the first.

use std::{collections::HashMap, sync::Arc, time::Duration};

use super::{
    file::{ParameterFile, StepFile, SubcommandFile, ToolFile},
    inherit::Inherited,
    name,
    parameter::ParameterKind,
    problem::{Mistake, child},
    tool::{
        BUILT_IN_TOOLS, CommandTemplate, Leaf, LeafAction, META_PARAMETERS, SequenceTemplate, Skip, Slot,
        StepTemplate, ToolDef,
    },
};

/// The value of `command` that makes a file a sequence.
const SEQUENCE_COMMAND: &str = "sequence";

/// The tool, together with everything that is wrong. It is only good for use when no mistake is an error.
pub(super) fn validate(file: &str, raw: ToolFile) -> (ToolDef, Vec<Mistake>) {
    let mut validation = Validation::default();
    validation.check_sequence(&raw);
    let command = validation.command(&raw.command);
    let prefix = validation.prefix(&raw, &command);
    validation.level(raw.into_root(prefix.clone()), "", Inherited::above(command));
    let tool = ToolDef {
        file: file.into(),
        prefix,
        leaves: validation.leaves,
    };
    (tool, validation.mistakes)
}

#[derive(Default)]
struct Validation {
    mistakes: Vec<Mistake>,
    leaves: Vec<Arc<Leaf>>,
    /// Pointer to the origin of the first part of all names.
    prefix_pointer: String,
    /// Pointer to the first use of each leaf's name.
    names: HashMap<String, String>,
}

impl Validation {
    fn error(&mut self, pointer: impl Into<String>, message: impl Into<String>) {
        self.mistakes.push(Mistake::error(pointer, message));
    }

    /// Checks that `command`, `sequence` and `subcommand` of the tool go together.
    fn check_sequence(&mut self, raw: &ToolFile) {
        let is_sequence = raw.command.trim() == SEQUENCE_COMMAND;
        if is_sequence && raw.sequence.is_empty() {
            self.error("/command", "a sequence needs at least one step in `sequence`");
        }
        if is_sequence && !raw.subcommand.is_empty() {
            self.error("/subcommand", "a sequence cannot have subcommands");
        }
        if !is_sequence && !raw.sequence.is_empty() {
            let message = "a sequence of its own needs `\"command\": \"sequence\"`";
            let mistake = Mistake::error("/sequence", message).on_key();
            self.mistakes.push(mistake.hint("or move it into a subcommand"));
        }
    }

    /// The words of `command`.
    fn command(&mut self, command: &str) -> Vec<String> {
        if command.contains('\0') {
            self.error("/command", "`command` must not contain a NUL character");
        }
        if let Some(sign) = shell_sign(command) {
            let message = format!("no shell reads `command`, so `{sign}` in it is passed on as it is");
            let hint =
                "write `sh -c '…'` around it, leave it to `sandboxed_shell`, or quote what is meant as it is";
            self.mistakes
                .push(Mistake::warning("/command", message).hint(hint));
        }
        match shlex::split(command) {
            Some(words) if words.first().is_some_and(|word| !word.is_empty()) => words,
            Some(_) => {
                self.error("/command", "`command` must name a program");
                Vec::new()
            }
            None => {
                self.error("/command", "`command` has a quote that is not closed");
                Vec::new()
            }
        }
    }

    fn prefix(&mut self, raw: &ToolFile, command: &[String]) -> String {
        if let Some(name) = &raw.name {
            self.prefix_pointer = "/name".into();
            if let Some(message) = name::complaint(name) {
                self.error("/name", message);
            }
            return name.clone();
        }
        self.prefix_pointer = "/command".into();
        let Some(program) = command.first() else {
            return String::new();
        };
        let file_name = program.rsplit('/').next().unwrap_or(program);
        if raw.command.trim() == SEQUENCE_COMMAND {
            self.error("", "a sequence needs a `name`");
        } else if let Some(objection) = name::objection(file_name) {
            let message = format!("`{file_name}` cannot be the tool's name: it {objection}");
            let mistake = Mistake::error("/command", message);
            self.mistakes.push(mistake.hint("give the tool a `name`"));
        }
        file_name.to_owned()
    }

    fn level(&mut self, raw: SubcommandFile, pointer: &str, inherited: Inherited) {
        let level = inherited.at(&raw, pointer, &mut self.mistakes);
        if raw.description.trim().is_empty() {
            let message = "`description` must not be empty: the model chooses tools by it";
            self.error(child(pointer, "description"), message);
        }
        let schema_hint = "the schema is made from `options` and `positional_args`";
        let advice_hint =
            "advice for the model goes into `description`, advice after a success into `success_hint`";
        for (field, is_given, hint) in [
            ("input_schema", raw.input_schema.is_some(), schema_hint),
            ("hints", raw.hints.is_some(), advice_hint),
            ("guidance_key", raw.guidance_key.is_some(), advice_hint),
        ] {
            if is_given {
                let mistake = Mistake::warning(child(pointer, field), format!("`{field}` is not used"));
                self.mistakes.push(mistake.on_key().hint(hint));
            }
        }
        if raw.step_delay_ms.is_some() && raw.sequence.is_empty() {
            let message = "`step_delay_ms` has no effect without a `sequence`";
            self.mistakes
                .push(Mistake::warning(child(pointer, "step_delay_ms"), message));
        }
        if !raw.subcommand.is_empty() {
            self.group(raw, pointer, level);
        } else if !raw.sequence.is_empty() {
            self.sequence(raw, pointer, level);
        } else {
            self.command_leaf(raw, pointer, level);
        }
    }

    fn group(&mut self, raw: SubcommandFile, pointer: &str, mut level: Inherited) {
        let is_root = pointer.is_empty();
        if !raw.positional_args.is_empty() {
            let owner = if is_root { "a tool" } else { "a subcommand" };
            let message = format!("{owner} with subcommands cannot have positional arguments of its own");
            let mistake = Mistake::error(child(pointer, "positional_args"), message).on_key();
            let hint = "give them to a subcommand; one named `default` stands for the parent itself";
            self.mistakes.push(mistake.hint(hint));
        }
        if !raw.sequence.is_empty() && !is_root {
            let message = "a subcommand has either a `sequence` or a `subcommand` list";
            self.error(child(pointer, "sequence"), message);
        }
        self.options(raw.options, pointer, &mut level);
        for (index, subcommand) in raw.subcommand.into_iter().enumerate() {
            let pointer = child(&child(pointer, "subcommand"), index);
            self.level(subcommand, &pointer, level.clone());
        }
    }

    fn options(&mut self, options: Vec<ParameterFile>, pointer: &str, level: &mut Inherited) {
        let (pointer, place) = (
            child(pointer, "options"),
            ParameterKind::Option(level.value_style),
        );
        let slots = level.parameters.add(options, &pointer, place, &mut self.mistakes);
        level.slots.extend(slots);
    }

    fn command_leaf(&mut self, raw: SubcommandFile, pointer: &str, mut level: Inherited) {
        self.options(raw.options, pointer, &mut level);
        level.slots.push(Slot::StreamArguments);
        let positionals = child(pointer, "positional_args");
        let slots = level.parameters.add(
            raw.positional_args,
            &positionals,
            ParameterKind::Positional,
            &mut self.mistakes,
        );
        level.slots.extend(slots);
        let template = CommandTemplate {
            slots: std::mem::take(&mut level.slots),
            environment: std::mem::take(&mut level.environment),
            path_dirs: std::mem::take(&mut level.path_dirs),
            success_codes: std::mem::take(&mut level.success_codes),
            end_of_options: level.end_of_options,
            stream: level.stream.take(),
            success_hint: level.success_hint.take(),
            stop_signal: level.stop_signal,
        };
        self.leaf(raw.description, pointer, level, LeafAction::Command(template));
    }

    fn sequence(&mut self, raw: SubcommandFile, pointer: &str, level: Inherited) {
        let own = [
            ("options", &raw.options),
            ("positional_args", &raw.positional_args),
        ];
        for (field, given) in own {
            if !given.is_empty() {
                let message = format!("a sequence takes no `{field}` of its own");
                let mistake = Mistake::error(child(pointer, field), message).on_key();
                self.mistakes.push(mistake.hint("give `args` to its steps"));
            }
        }
        let pointers = child(pointer, "sequence");
        let steps = raw.sequence.into_iter().enumerate();
        let template = SequenceTemplate {
            steps: steps
                .map(|(index, step)| self.step(step, child(&pointers, index)))
                .collect(),
            delay: Duration::from_millis(raw.step_delay_ms.unwrap_or_default()),
        };
        self.leaf(raw.description, pointer, level, LeafAction::Sequence(template));
    }

    fn step(&mut self, raw: StepFile, pointer: String) -> StepTemplate {
        for name in META_PARAMETERS
            .into_iter()
            .filter(|name| raw.args.contains_key(*name))
        {
            let pointer = child(&child(&pointer, "args"), name);
            let mistake = Mistake::error(pointer, format!("a step cannot set `{name}`")).on_key();
            self.mistakes
                .push(mistake.hint("it is set for the whole sequence by the call"));
        }
        let skip = match (raw.skip_if_file_exists, raw.skip_if_file_missing) {
            (Some(_), Some(_)) => {
                let message = "a step has either `skip_if_file_exists` or `skip_if_file_missing`";
                self.error(&pointer, message);
                None
            }
            (Some(path), None) => Some(Skip::IfFileExists(path)),
            (None, Some(path)) => Some(Skip::IfFileMissing(path)),
            (None, None) => None,
        };
        // Nested subcommands are joined by underscores, or written with spaces as on the command line.
        let path = raw.subcommand.unwrap_or_default();
        let words = path
            .split(['_', ' '])
            .filter(|word| !word.is_empty() && *word != "default");
        let words: Vec<&str> = std::iter::once(raw.tool.as_str()).chain(words).collect();
        let (label, target) = (words.join(" "), words.join("_"));
        StepTemplate {
            pointer,
            tool: raw.tool,
            label,
            target,
            arguments: raw.args,
            description: raw.description,
            skip,
        }
    }

    fn leaf(&mut self, description: String, pointer: &str, level: Inherited, action: LeafAction) {
        let name_pointer = match pointer {
            "" => self.prefix_pointer.clone(),
            pointer => child(pointer, "name"),
        };
        let probes = match &action {
            LeafAction::Command(_) => level.needs(),
            LeafAction::Sequence(_)
            | LeafAction::Script
            | LeafAction::ReadOnlyScript
            | LeafAction::File(_) => level.probes,
        };
        let name = level.name;
        if name.len() > name::MAX_LENGTH && !pointer.is_empty() {
            let (length, allowed) = (name.len(), name::MAX_LENGTH);
            let message =
                format!("the tool's name `{name}` is {length} characters long; {allowed} are allowed");
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
            level: level.level,
            synchronous: level.synchronous,
            timeout: level.timeout,
            annotations: level.annotations,
            enabled: level.enabled,
            probes,
            install_instructions: level.install_instructions,
        }));
    }
}

/// The first thing in a command line that only a shell would understand; quoted text is meant as it is.
fn shell_sign(command: &str) -> Option<&'static str> {
    let mut quote = None;
    let mut begins_word = true;
    let mut characters = command.chars().peekable();
    while let Some(character) = characters.next() {
        let next = characters.peek().copied();
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (None, '\'' | '"') => quote = Some(character),
            (None | Some('"'), '\\') => _ = characters.next(),
            (Some(_), _) => {}
            (None, '|') => return Some("|"),
            (None, '&') => return Some(if next == Some('&') { "&&" } else { "&" }),
            (None, ';') => return Some(";"),
            (None, '>') => return Some(">"),
            (None, '<') => return Some("<"),
            (None, '*') => return Some("*"),
            (None, '~') if begins_word => return Some("~"),
            (None, '$') if next.is_some_and(|next| next.is_alphanumeric() || "_{(".contains(next)) => {
                return Some("$");
            }
            (None, _) => {}
        }
        begins_word = quote.is_none() && character.is_whitespace();
    }
    None
}
