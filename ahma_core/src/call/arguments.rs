//! From checked arguments to the elements of a command line.
//!
//! One value is one element, whatever it contains. Nothing is quoted or split here, and a value cannot turn into an
//! option: what begins with a dash is attached to its flag, guarded by `--`, or refused.

use std::path::Path;

use serde_json::{Map, Value};

use super::{
    paths,
    plan::{ArgumentFile, Command, Program},
    planner::PlanSettings,
};
use crate::{
    mtdf::{
        ArgumentProblem, CommandTemplate, Dash, Form, Given, Leaf, META_PARAMETERS, Parameter, Slot,
        ValueStyle, ValueType, accept, plain_name,
    },
    observe::CallArguments,
};

/// Linux refuses to start a program with a longer argument (32 pages, with the final NUL).
const MAX_ARGUMENT_BYTES: usize = 32 * 4096 - 1;

/// The separator between options and everything else.
const END_OF_OPTIONS: &str = "--";

/// The command that the template makes of the arguments, or everything that is wrong with them.
pub(super) fn command(
    leaf: &Leaf,
    template: &CommandTemplate,
    arguments: &Map<String, Value>,
    settings: &PlanSettings,
    directory: &Path,
) -> Result<Command, Vec<ArgumentProblem>> {
    let (values, problems) = accept(leaf.parameters(), arguments, &META_PARAMETERS);
    let mut line = CommandLine {
        template,
        settings,
        directory,
        argv: Vec::new(),
        files: Vec::new(),
        stdin: None,
        values: CallArguments::new(),
        guarded: false,
        problems,
    };
    line.check_exclusive(leaf, arguments);
    let mut values = values.into_iter();
    let mut missing: Option<&str> = None;
    for slot in &template.slots {
        match slot {
            Slot::Word(word) => {
                line.guarded |= word == END_OF_OPTIONS;
                line.argv.push(word.clone());
            }
            Slot::StreamArguments => line.stream_arguments(),
            Slot::Parameter(parameter) => {
                // `accept` says something about each parameter, in the order of the slots.
                let given = values.next().unwrap_or(Given::Nothing);
                match (given, &parameter.form) {
                    (Given::Value(value), form) => {
                        if let (Form::Positional(Dash::Guarded | Dash::Verbatim), Some(earlier)) =
                            (form, missing)
                        {
                            let message =
                                format!("comes after `{earlier}`, so `{earlier}` must be given as well");
                            line.refuse(parameter, message);
                        }
                        line.parameter(parameter, &value);
                    }
                    (Given::Nothing, Form::Positional(Dash::Guarded | Dash::Verbatim)) => {
                        missing = Some(&parameter.name)
                    }
                    (Given::Nothing | Given::Wrong, _) => {}
                }
            }
        }
    }
    line.finish()
}

/// A command line that is being written.
struct CommandLine<'a> {
    template: &'a CommandTemplate,
    settings: &'a PlanSettings,
    directory: &'a Path,
    argv: Vec<String>,
    files: Vec<ArgumentFile>,
    stdin: Option<String>,
    /// The arguments that stand on the line, by name.
    values: CallArguments,
    /// A `--` of ours stands on the line, so the program takes nothing after it for an option.
    /// A value that happens to be `--` does not count.
    guarded: bool,
    problems: Vec<ArgumentProblem>,
}

impl CommandLine<'_> {
    fn refuse(&mut self, parameter: &Parameter, message: impl Into<String>) {
        self.problems.push(ArgumentProblem::new(&parameter.name, message));
    }

    /// Refuses arguments that do not go together.
    fn check_exclusive(&mut self, leaf: &Leaf, arguments: &Map<String, Value>) {
        let is_given = |parameter: &Parameter| {
            arguments.iter().any(|(key, value)| {
                let is_set = !matches!(value, Value::Null | Value::Bool(false));
                is_set && parameter.names().any(|own| plain_name(own) == plain_name(key))
            })
        };
        for names in &self.template.exclusive {
            let is_listed =
                |parameter: &Parameter| parameter.names().any(|own| names.iter().any(|name| name == own));
            let mut given = leaf
                .parameters()
                .filter(|parameter| is_listed(parameter) && is_given(parameter));
            if let (Some(first), Some(second)) = (given.next(), given.next()) {
                let message = format!("does not go with `{}`; give one of them", first.name);
                self.refuse(second, message);
            }
        }
    }

    fn parameter(&mut self, parameter: &Parameter, value: &Value) {
        if !matches!(parameter.form, Form::File(_) | Form::Stdin) {
            let text = ValueType::texts(value).join(" ");
            self.values.insert(parameter.name.clone(), text);
        }
        if let Value::Bool(set) = value {
            if let (true, Form::Flag(flag, _)) = (set, &parameter.form) {
                self.argv.push(flag.clone());
            }
            return;
        }
        let texts = ValueType::texts(value);
        for text in &texts {
            self.check(parameter, text);
        }
        match &parameter.form {
            Form::Flag(flag, style) => texts.into_iter().for_each(|text| self.flag(flag, *style, text)),
            Form::FlagOnce(flag) => self.flag_once(parameter, flag, texts),
            Form::File(flag) => {
                for text in texts {
                    self.argv.push(flag.clone());
                    self.files.push(ArgumentFile {
                        index: self.argv.len(),
                        contents: text,
                    });
                    self.argv.push(String::new());
                }
            }
            Form::Stdin => self.stdin = texts.into_iter().next(),
            Form::Positional(dash) => self.positional(parameter, *dash, texts),
        }
    }

    fn check(&mut self, parameter: &Parameter, text: &str) {
        if parameter.value.is_path()
            && let Err(message) = paths::check(self.settings, self.directory, text)
        {
            self.refuse(parameter, message);
        }
        let in_file = matches!(parameter.form, Form::File(_) | Form::Stdin);
        if !in_file && text.len() > MAX_ARGUMENT_BYTES {
            let message = format!(
                "is {} bytes long; a command line takes {MAX_ARGUMENT_BYTES} at most: write it to a file with `file_write` and \
                 give the program the file's path",
                text.len()
            );
            self.refuse(parameter, message);
        }
    }

    /// By default two elements, unless the program could take the value for another option.
    fn flag(&mut self, flag: &str, style: ValueStyle, text: String) {
        let joined = match style {
            ValueStyle::Auto => text.starts_with('-'),
            ValueStyle::Separate => false,
            ValueStyle::Joined => true,
        };
        let is_long = flag.starts_with("--");
        // A flag such as `-name` is neither: its program takes the next element, whatever it is. And nothing can be
        // joined to a short flag without text, or the flag would swallow the next element.
        let is_short = !is_long && flag.chars().count() == 2 && !text.is_empty();
        match joined {
            true if is_long => self.argv.push(format!("{flag}={text}")),
            true if is_short => self.argv.push(format!("{flag}{text}")),
            _ => self.argv.extend([flag.to_owned(), text]),
        }
    }

    fn flag_once(&mut self, parameter: &Parameter, flag: &str, texts: Vec<String>) {
        if let Some(text) = texts.iter().find(|text| text.starts_with('-')) {
            self.refuse(
                parameter,
                format!("must not have elements that begin with a dash, such as `{text}`"),
            );
        }
        if !texts.is_empty() {
            self.argv.push(flag.to_owned());
            self.argv.extend(texts);
        }
    }

    fn positional(&mut self, parameter: &Parameter, dash: Dash, texts: Vec<String>) {
        let first_dashed = texts.iter().position(|text| text.starts_with('-'));
        match (dash, first_dashed) {
            (Dash::AfterSeparator, _) if !texts.is_empty() => self.guard(),
            // A guard that is already there covers everything after it.
            (Dash::Guarded, Some(_)) if self.guarded => {}
            (Dash::Guarded, Some(_)) if self.template.end_of_options => self.guard(),
            (Dash::Guarded, Some(index)) => {
                let text = &texts[index];
                let message =
                    format!("must not begin with a dash, because it could be taken for an option: `{text}`");
                self.refuse(parameter, message);
            }
            (Dash::Guarded | Dash::Verbatim | Dash::AfterSeparator, _) => {}
        }
        self.argv.extend(texts);
    }

    fn guard(&mut self) {
        self.argv.push(END_OF_OPTIONS.into());
        self.guarded = true;
    }

    fn stream_arguments(&mut self) {
        if let Some(rules) = &self.template.stream {
            self.argv.extend_from_slice(rules.append_args());
        }
    }

    fn finish(self) -> Result<Command, Vec<ArgumentProblem>> {
        if !self.problems.is_empty() {
            return Err(self.problems);
        }
        let template = self.template;
        let mut environment = template.environment.clone();
        if let Some(rules) = &template.stream {
            // The rules read what the program prints under these variables, so they have the last word.
            environment.extend(rules.env().clone());
        }
        Ok(Command {
            program: Program::Argv(self.argv),
            files: self.files,
            stdin: self.stdin,
            environment,
            path_dirs: template
                .path_dirs
                .iter()
                .map(|directory| self.settings.scope.join(directory))
                .collect(),
            exit_codes: template.exit_codes.clone(),
            stream: template.stream.clone(),
            arguments: self.values,
            success_hint: template.success_hint.clone(),
            failure_hint: template.failure_hint.clone(),
            install_instructions: None,
            stop_signal: template.stop_signal,
        })
    }
}
