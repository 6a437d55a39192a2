//! From a tool file as it stands on disk to a tool that makes sense.
//!
//! Walks down the tree of subcommands, carrying what each level inherits, and ends in flat leaves.
//! Every mistake is collected with its JSON pointer; it never stops at the first.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use ahma_common::nearest;

use super::{
    file::{ParameterFile, StepFile, SubcommandFile, ToolEntryFile, ToolFile},
    inherit::Inherited,
    name,
    parameter::ParameterKind,
    problem::{Mistake, child},
    step_arguments,
    tool::{
        BUILT_IN_TOOLS, CommandTemplate, Leaf, LeafAction, META_PARAMETERS, Parameter, ReadyPort, ReadySign,
        SequenceTemplate, Skip, Slot, StepTemplate, ToolDef,
    },
    value::listed,
};

/// The value of `command` that makes a file a sequence.
const SEQUENCE_COMMAND: &str = "sequence";

/// The tool, together with everything that is wrong. It is only good for use when no mistake is an error.
pub(super) fn validate(file: &str, mut raw: ToolFile) -> (ToolDef, Vec<Mistake>) {
    let mut validation = Validation::default();
    let command = raw.command.take();
    match raw.tools.take() {
        Some(tools) => validation.tools(raw, command, tools),
        None => {
            let (name, command) = (raw.name.take(), command.unwrap_or_default());
            validation.tool(name, &command, raw.into_root(), "", Inherited::above(Vec::new()));
        }
    }
    validation.check_argument_references();
    let tool = ToolDef {
        file: file.into(),
        leaves: validation.leaves,
    };
    (tool, validation.mistakes)
}

#[derive(Default)]
struct Validation {
    mistakes: Vec<Mistake>,
    leaves: Vec<Arc<Leaf>>,
    /// Pointer to the tool that is being looked at.
    root: String,
    /// Pointer to the origin of the first part of its names.
    prefix_pointer: String,
    /// Pointer to the first use of each leaf's name.
    names: HashMap<String, String>,
    /// Arguments that stream rules name, by pointer; settled by any leaf that has the argument.
    references: BTreeMap<String, ReferenceState>,
}

/// An argument that a stream rule names.
struct ReferenceState {
    name: String,
    is_known: bool,
    nearest: Option<String>,
}

impl Validation {
    fn error(&mut self, pointer: impl Into<String>, message: impl Into<String>) {
        self.mistakes.push(Mistake::error(pointer, message));
    }

    /// Several tools, and what the file says about all of them.
    fn tools(&mut self, raw: ToolFile, command: Option<String>, tools: Vec<ToolEntryFile>) {
        let misplaced = [
            ("name", raw.name.is_some()),
            ("subcommand", !raw.subcommand.is_empty()),
            ("positional_args", !raw.positional_args.is_empty()),
            ("sequence", !raw.sequence.is_empty()),
        ];
        for (field, is_given) in misplaced {
            if is_given {
                let message = format!("`{field}` does not go with `tools`");
                let mistake = Mistake::error(child("", field), message).on_key();
                self.mistakes.push(mistake.hint("give it to one of the tools"));
            }
        }
        if tools.is_empty() {
            self.error("/tools", "`tools` must not be empty");
        }
        let words = command
            .as_deref()
            .map(|command| self.command(command, "/command"));
        let mut head = raw.into_root();
        let options = std::mem::take(&mut head.options);
        let mut above = Inherited::above(Vec::new());
        // For its availability check; each tool sets its own.
        above.command = words.unwrap_or_default();
        let mut level = above.at(&head, "", &mut self.mistakes);
        self.options(options, "", &mut level);
        self.check_exclusive(&head.exclusive, "", &level);
        for (index, mut tool) in tools.into_iter().enumerate() {
            let pointer = child("/tools", index);
            let name = tool.name.take();
            let Some(command) = tool.command.take().or_else(|| command.clone()) else {
                let mistake = Mistake::error(&pointer, "the field `command` is missing");
                self.mistakes
                    .push(mistake.hint("give one to the tool, or to the file for all its tools"));
                continue;
            };
            self.tool(name, &command, tool.into_root(), &pointer, level.clone());
        }
    }

    /// One tool: a command, a sequence, or a tree of subcommands.
    fn tool(
        &mut self,
        name: Option<String>,
        command: &str,
        mut root: SubcommandFile,
        pointer: &str,
        inherited: Inherited,
    ) {
        self.check_sequence(command, &root, pointer);
        let words = self.command(command, &child(pointer, "command"));
        root.name = self.prefix(name, command, &words, pointer);
        self.root = pointer.to_owned();
        self.level(root, pointer, inherited.with_command(words));
    }

    /// Checks that `command`, `sequence` and `subcommand` of the tool go together.
    fn check_sequence(&mut self, command: &str, root: &SubcommandFile, pointer: &str) {
        let is_sequence = command.trim() == SEQUENCE_COMMAND;
        if is_sequence && root.sequence.is_empty() {
            let message = "a sequence needs at least one step in `sequence`";
            self.error(child(pointer, "command"), message);
        }
        if is_sequence && !root.subcommand.is_empty() {
            self.error(child(pointer, "subcommand"), "a sequence cannot have subcommands");
        }
        if !is_sequence && !root.sequence.is_empty() {
            let message = "a sequence of its own needs `\"command\": \"sequence\"`";
            let mistake = Mistake::error(child(pointer, "sequence"), message).on_key();
            self.mistakes.push(mistake.hint("or move it into a subcommand"));
        }
    }

    /// The words of `command`.
    fn command(&mut self, command: &str, pointer: &str) -> Vec<String> {
        if command.contains('\0') {
            self.error(pointer, "`command` must not contain a NUL character");
        }
        if let Some(sign) = shell_sign(command) {
            let message = format!("no shell reads `command`, so `{sign}` in it is passed on as it is");
            let hint =
                "write `sh -c '…'` around it, leave it to `sandboxed_shell`, or quote what is meant as it is";
            self.mistakes.push(Mistake::warning(pointer, message).hint(hint));
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

    fn prefix(&mut self, name: Option<String>, command: &str, words: &[String], pointer: &str) -> String {
        if let Some(name) = name {
            self.prefix_pointer = child(pointer, "name");
            if let Some(message) = name::complaint(&name) {
                self.error(self.prefix_pointer.clone(), message);
            }
            return name;
        }
        self.prefix_pointer = child(pointer, "command");
        let Some(program) = words.first() else {
            return String::new();
        };
        let file_name = program.rsplit('/').next().unwrap_or(program);
        if command.trim() == SEQUENCE_COMMAND {
            self.error(pointer, "a sequence needs a `name`");
        } else if let Some(objection) = name::objection(file_name) {
            let message = format!("`{file_name}` cannot be the tool's name: it {objection}");
            let mistake = Mistake::error(self.prefix_pointer.clone(), message);
            self.mistakes.push(mistake.hint("give the tool a `name`"));
        }
        file_name.to_owned()
    }

    /// Checks that the lists name arguments of this level.
    fn check_exclusive(&mut self, lists: &[Vec<String>], pointer: &str, level: &Inherited) {
        let pointer = child(pointer, "exclusive");
        for (index, names) in lists.iter().enumerate() {
            let pointer = child(&pointer, index);
            if names.len() < 2 {
                self.error(
                    &pointer,
                    "needs at least two names: one of them only may be given",
                );
            }
            for (index, name) in names.iter().enumerate() {
                if !level.parameters.has(name) {
                    let mistake =
                        Mistake::error(child(&pointer, index), format!("no argument is called `{name}`"));
                    let near = level.parameters.nearest(name);
                    let hint = near.map(|near| format!("did you mean `{near}`?"));
                    self.mistakes.push(mistake.hint_if(hint));
                }
            }
        }
    }

    /// Compares the arguments that a leaf's rules name with those that it has.
    fn note_argument_references(&mut self, level: &Inherited) {
        for reference in &level.stream_references {
            let pointer = format!("{}{}", level.stream_pointer, reference.pointer);
            let state = self.references.entry(pointer).or_insert_with(|| ReferenceState {
                name: reference.name.clone(),
                is_known: false,
                nearest: None,
            });
            state.is_known |= level.parameters.has(&reference.name);
            state.nearest = (state.nearest.take())
                .or_else(|| level.parameters.nearest(&reference.name).map(str::to_owned));
        }
    }

    fn check_argument_references(&mut self) {
        for (pointer, state) in std::mem::take(&mut self.references) {
            if !state.is_known {
                let message = format!("`{{${}}}` names no argument of the tool", state.name);
                let hint = state.nearest.map(|near| format!("did you mean `{{${near}}}`?"));
                self.mistakes.push(Mistake::error(pointer, message).hint_if(hint));
            }
        }
    }

    fn level(&mut self, raw: SubcommandFile, pointer: &str, inherited: Inherited) {
        let level = inherited.at(&raw, pointer, &mut self.mistakes);
        if raw.description.trim().is_empty() {
            let message = "`description` must not be empty: the model chooses tools by it";
            self.error(child(pointer, "description"), message);
        }
        let schema_hint = "the schema is made from `options` and `positional_args`";
        let advice_hint = "advice for the model goes into `description`, advice after a call into `success_hint` or `failure_hint`";
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
        let is_root = pointer == self.root;
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
        self.check_exclusive(&raw.exclusive, pointer, &level);
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
        self.check_exclusive(&raw.exclusive, pointer, &level);
        self.check_ready(pointer, &level);
        self.note_argument_references(&level);
        let template = CommandTemplate {
            slots: std::mem::take(&mut level.slots),
            environment: std::mem::take(&mut level.environment),
            path_dirs: std::mem::take(&mut level.path_dirs),
            exit_codes: std::mem::take(&mut level.exit_codes),
            end_of_options: level.end_of_options,
            stream: level.stream.take(),
            success_hint: level.success_hint.take(),
            failure_hint: level.failure_hint.take(),
            stop_signal: level.stop_signal,
            ready: level.ready.take(),
            exclusive: std::mem::take(&mut level.exclusive),
        };
        self.leaf(raw.description, pointer, level, LeafAction::Command(template));
    }

    /// Checks that there is the argument which gives the port of `ready`.
    fn check_ready(&mut self, pointer: &str, level: &Inherited) {
        if let Some(ReadySign::Port(ReadyPort::Argument(name))) = &level.ready
            && !level.parameters.has(name)
        {
            let message = format!("`{{${name}}}` names no argument of the tool");
            self.error(child(pointer, "ready"), message);
        }
    }

    fn sequence(&mut self, raw: SubcommandFile, pointer: &str, mut level: Inherited) {
        // What stands above it is for the commands beside it.
        let own = [
            ("options", raw.options, ParameterKind::Option(level.value_style)),
            ("positional_args", raw.positional_args, ParameterKind::Positional),
        ];
        let mut parameters = Vec::new();
        for (field, given, kind) in own {
            let slots = (level.parameters).add(given, &child(pointer, field), kind, &mut self.mistakes);
            parameters.extend(slots.iter().filter_map(Slot::parameter).cloned());
        }
        let pointers = child(pointer, "sequence");
        for (index, step) in raw.sequence.iter().enumerate() {
            self.check_step(step, index, &child(&pointers, index), &parameters);
        }
        let steps = raw.sequence.into_iter().enumerate();
        let template = SequenceTemplate {
            parameters,
            steps: steps
                .map(|(index, step)| self.step(step, child(&pointers, index)))
                .collect(),
            delay: Duration::from_millis(raw.step_delay_ms.unwrap_or_default()),
        };
        self.leaf(raw.description, pointer, level, LeafAction::Sequence(template));
    }

    fn check_step(&mut self, step: &StepFile, index: usize, pointer: &str, parameters: &[Arc<Parameter>]) {
        if index == 0 && step.parallel == Some(true) {
            let message = "the first step has none before it to run at the same time";
            self.error(child(pointer, "parallel"), message);
        }
        // Without parameters, `{$x}` is a text like any other.
        let names: Vec<&str> = parameters
            .iter()
            .flat_map(|parameter| parameter.names())
            .collect();
        for (argument, value) in step.args.iter().filter(|_| !parameters.is_empty()) {
            for name in step_arguments::references(value) {
                if !names.contains(&name) {
                    let pointer = child(&child(pointer, "args"), argument);
                    let message = format!("`{{${name}}}` names no argument of the sequence");
                    let mistake = Mistake::error(pointer, message);
                    self.mistakes
                        .push(match nearest(name, names.iter().copied()).first() {
                            Some(near) => mistake.hint(format!("did you mean `{{${near}}}`?")),
                            None => mistake.hint(format!("it takes {}", listed(&names))),
                        });
                }
            }
        }
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
            continue_on_failure: raw.continue_on_failure.unwrap_or_default(),
            parallel: raw.parallel.unwrap_or_default(),
        }
    }

    fn leaf(&mut self, description: String, pointer: &str, level: Inherited, action: LeafAction) {
        let name_pointer = if pointer == self.root {
            self.prefix_pointer.clone()
        } else {
            child(pointer, "name")
        };
        let probes = match &action {
            LeafAction::Command(_) => level.needs(),
            LeafAction::Sequence(_)
            | LeafAction::Script
            | LeafAction::ReadOnlyScript
            | LeafAction::File(_) => level.probes,
        };
        let name = level.name;
        if name.len() > name::MAX_LENGTH && pointer != self.root {
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
