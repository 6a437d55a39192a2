//! The one arrow from a call to its plan.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::{Map, Value};

use super::{
    arguments,
    error::CallError,
    file_arguments, meta, paths,
    plan::{
        Command, CommandPlan, ExecutionMode, Lifetime, Program, Ready, Sequence, SequenceStep, SkipCondition,
        Work,
    },
};
use crate::{
    catalog::Catalog,
    mtdf::{
        ArgumentProblem, Embedding, Given, Leaf, LeafAction, META_PARAMETERS, ReadyPort, ReadySign,
        SequenceTemplate, Skip, StepTemplate, accept, bind, plain_name, shell_command,
    },
};

/// A call as a client makes it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolCall {
    pub tool: String,
    pub arguments: Map<String, Value>,
}

/// Context of a plan: everything it depends on except the call and the catalogue.
#[derive(Debug, Clone)]
pub struct PlanSettings {
    /// Absolute, without links, `.` and `..`.
    pub scope: PathBuf,
    /// Other spellings of the scope, such as the path with links that the user typed.
    pub scope_aliases: Vec<PathBuf>,
    /// Directories outside the scope that commands may reach, such as the private temporary directory.
    pub also_allowed: Vec<PathBuf>,
    /// Further readable paths, such as system directories: valid as arguments, not as working directories.
    pub readable: Vec<PathBuf>,
    pub default_timeout: Duration,
    /// Every call waits for its result.
    pub force_sync: bool,
}

impl PlanSettings {
    /// Position of a path in the scope, by whatever name of the scope the path begins with. Judged by its text alone.
    pub(crate) fn below_scope<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        std::iter::once(&self.scope)
            .chain(&self.scope_aliases)
            .find_map(|root| path.strip_prefix(root).ok())
    }

    /// True if commands may read a path, judged by its text alone.
    pub(crate) fn opens(&self, path: &Path) -> bool {
        self.allows(path) || self.readable.iter().any(|root| path.starts_with(root))
    }

    /// True if commands may reach a path and run in it, judged by its text alone.
    pub(crate) fn allows(&self, path: &Path) -> bool {
        self.below_scope(path).is_some() || self.also_allowed.iter().any(|root| path.starts_with(root))
    }
}

/// Directory a call would run in, whatever else is wrong with it; none if that cannot be told.
pub fn working_directory(catalog: &Catalog, settings: &PlanSettings, call: &ToolCall) -> Option<PathBuf> {
    let leaf = &catalog.get(&call.tool)?.leaf;
    let given = call.arguments.iter();
    let mut given = given
        .filter(|(name, _)| plain_name(name) == "working_directory")
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let meta = meta::take(&mut given, leaf, &mut Vec::new());
    paths::working_directory(settings, meta.directory.as_deref()).ok()
}

/// Decides what a call will run, or says everything that is wrong with it.
pub fn plan(catalog: &Catalog, settings: &PlanSettings, call: ToolCall) -> Result<CommandPlan, CallError> {
    let ToolCall {
        tool: name,
        mut arguments,
    } = call;
    let Some(tool) = catalog.get(&name) else {
        let nearest = catalog.nearest(&name).into_iter().map(str::to_owned).collect();
        return Err(CallError::UnknownTool { name, nearest });
    };
    let leaf = &tool.leaf;
    let mut problems = Vec::new();
    let mut meta = meta::take(&mut arguments, leaf, &mut problems);
    let directory = paths::working_directory(settings, meta.directory.as_deref()).unwrap_or_else(|message| {
        problems.push(ArgumentProblem::new("working_directory", message));
        settings.scope.clone()
    });
    let planning = Planning {
        catalog,
        settings,
        directory: &directory,
    };
    let work = match planning.work(leaf, &arguments) {
        Ok(work) if problems.is_empty() => {
            with_input(work, std::mem::take(&mut meta.environment), meta.stdin.take())
        }
        Ok(_) => return Err(CallError::Invalid { tool: name, problems }),
        Err(CallError::Invalid { problems: more, .. }) => {
            problems.extend(more);
            return Err(CallError::Invalid { tool: name, problems });
        }
        Err(error) => return Err(error),
    };
    let ready = ready(leaf, &work).map_err(|problem| CallError::Invalid {
        tool: name.clone(),
        problems: vec![problem],
    })?;
    let lifetime = meta.lifetime(ready);
    Ok(CommandPlan {
        work,
        mode: mode(settings, meta.mode, leaf),
        timeout: match &lifetime {
            Lifetime::Finite => meta.timeout.or(leaf.timeout).unwrap_or(settings.default_timeout),
            Lifetime::KeepsRunning { .. } => meta.timeout.unwrap_or(Duration::MAX),
        },
        lifetime,
        tool: name,
        directory,
    })
}

/// The sign of the tool file that the command is ready.
fn ready(leaf: &Leaf, work: &Work) -> Result<Option<Ready>, ArgumentProblem> {
    let (LeafAction::Command(template), Work::Command(command)) = (&leaf.action, work) else {
        return Ok(None);
    };
    Ok(match &template.ready {
        None => None,
        Some(ReadySign::Line(pattern)) => Some(Ready::Line(pattern.clone())),
        Some(ReadySign::Port(ReadyPort::Number(port))) => Some(Ready::Port(*port)),
        Some(ReadySign::Port(ReadyPort::Argument(name))) => match command.arguments.get(name) {
            None => None,
            Some(text) => Some(Ready::Port(text.parse().map_err(|_| {
                ArgumentProblem::new(name, format!("must be a port from 0 to 65535, not `{text}`"))
            })?)),
        },
    })
}

/// Variables are for every step, standard input is for the first.
fn with_input(mut work: Work, environment: BTreeMap<String, String>, stdin: Option<String>) -> Work {
    let commands: Vec<&mut Command> = match &mut work {
        Work::Command(command) => vec![command],
        Work::Sequence(sequence) => sequence.steps.iter_mut().map(|step| &mut step.command).collect(),
    };
    let mut stdin = stdin;
    for command in commands {
        command.environment.extend(environment.clone());
        command.stdin = stdin.take().or(command.stdin.take());
    }
    work
}

/// `--sync`, then the call, then the tool file; a call that nothing is said about runs in the background if it takes long.
fn mode(settings: &PlanSettings, asked: Option<ExecutionMode>, leaf: &Leaf) -> ExecutionMode {
    if settings.force_sync {
        return ExecutionMode::Synchronous;
    }
    asked.unwrap_or(match leaf.synchronous {
        Some(true) => ExecutionMode::Synchronous,
        Some(false) | None => ExecutionMode::Inline,
    })
}

/// Values that the steps of one call share.
struct Planning<'a> {
    catalog: &'a Catalog,
    settings: &'a PlanSettings,
    directory: &'a Path,
}

impl Planning<'_> {
    fn work(&self, leaf: &Leaf, arguments: &Map<String, Value>) -> Result<Work, CallError> {
        match &leaf.action {
            LeafAction::Command(_)
            | LeafAction::Script
            | LeafAction::ReadOnlyScript
            | LeafAction::File(_) => Ok(Work::Command(self.command(leaf, arguments)?)),
            LeafAction::Sequence(sequence) => {
                let given = self.own_arguments(leaf, arguments)?;
                let mut planned = Sequence {
                    steps: Vec::new(),
                    delay: Duration::ZERO,
                };
                self.sequence(
                    leaf,
                    sequence,
                    &given,
                    &mut planned,
                    &mut vec![leaf.name.as_str()],
                )?;
                Ok(Work::Sequence(planned))
            }
        }
    }

    /// The values of a sequence's own arguments, by their names.
    fn own_arguments(
        &self,
        leaf: &Leaf,
        arguments: &Map<String, Value>,
    ) -> Result<Map<String, Value>, CallError> {
        let (values, mut problems) = accept(leaf.parameters(), arguments, &META_PARAMETERS);
        let mut given = Map::new();
        for (parameter, value) in leaf.parameters().zip(values) {
            let Given::Value(value) = value else { continue };
            if parameter.value.is_path() {
                let texts = value
                    .as_array()
                    .map_or(std::slice::from_ref(&*value), Vec::as_slice);
                let checked = texts
                    .iter()
                    .filter_map(Value::as_str)
                    .map(|text| paths::check(self.settings, self.directory, text));
                problems.extend(
                    checked
                        .filter_map(Result::err)
                        .map(|message| ArgumentProblem::new(&parameter.name, message)),
                );
            }
            // By all its names: steps may use any of them.
            for name in parameter.names() {
                given.insert(name.to_owned(), value.clone().into_owned());
            }
        }
        if problems.is_empty() {
            Ok(given)
        } else {
            Err(CallError::Invalid {
                tool: leaf.name.clone(),
                problems,
            })
        }
    }

    fn command(&self, leaf: &Leaf, arguments: &Map<String, Value>) -> Result<Command, CallError> {
        let invalid = |problems| CallError::Invalid {
            tool: leaf.name.clone(),
            problems,
        };
        match &leaf.action {
            LeafAction::Command(template) => {
                let command = arguments::command(leaf, template, arguments, self.settings, self.directory);
                Ok(Command {
                    install_instructions: leaf.install_instructions.clone(),
                    ..command.map_err(invalid)?
                })
            }
            LeafAction::Script => {
                let text = shell_command(arguments, &META_PARAMETERS).map_err(invalid)?;
                Ok(Command::new(Program::Script(text)))
            }
            LeafAction::ReadOnlyScript => {
                let text = shell_command(arguments, &META_PARAMETERS).map_err(invalid)?;
                let mut command = Command::new(Program::ReadOnlyScript(text));
                // `git status` would refresh the index, which cannot be written.
                let locks = ("GIT_OPTIONAL_LOCKS".to_owned(), "0".to_owned());
                command.environment.extend([locks]);
                Ok(command)
            }
            LeafAction::File(tool) => {
                let request = file_arguments::request(*tool, arguments).map_err(invalid)?;
                Ok(Command::new(Program::File(request)))
            }
            LeafAction::Sequence(_) => Err(invalid(vec![ArgumentProblem::new(
                &leaf.name,
                "is a sequence, not a command",
            )])),
        }
    }

    /// Appends the steps, with those of inner sequences in their place. `inside` is the way down to here.
    fn sequence<'l>(
        &'l self,
        leaf: &Leaf,
        sequence: &'l SequenceTemplate,
        given: &Map<String, Value>,
        planned: &mut Sequence,
        inside: &mut Vec<&'l str>,
    ) -> Result<(), CallError> {
        // The delay keeps steps from disturbing each other, so the longest one asked for is right for all.
        planned.delay = planned.delay.max(sequence.delay);
        for step in &sequence.steps {
            let missing = || CallError::MissingStep {
                tool: leaf.name.clone(),
                step: step.target.clone(),
            };
            let target = &self.catalog.get(&step.target).ok_or_else(missing)?.leaf;
            let arguments = if sequence.parameters.is_empty() {
                Cow::Borrowed(&step.arguments)
            } else {
                let embedding = match &target.action {
                    LeafAction::Script | LeafAction::ReadOnlyScript => Embedding::ShellWord,
                    LeafAction::Command(_) | LeafAction::Sequence(_) | LeafAction::File(_) => {
                        Embedding::Plain
                    }
                };
                Cow::Owned(bind(&step.arguments, given, embedding))
            };
            match &target.action {
                LeafAction::Sequence(_) if inside.contains(&step.target.as_str()) => return Err(missing()),
                LeafAction::Sequence(inner) => {
                    let first = planned.steps.len();
                    inside.push(&step.target);
                    let given = self.own_arguments(target, &arguments)?;
                    self.sequence(target, inner, &given, planned, inside)?;
                    inside.pop();
                    for inner in planned.steps.iter_mut().skip(first) {
                        inner.continue_on_failure |= step.continue_on_failure;
                    }
                }
                LeafAction::Command(_)
                | LeafAction::Script
                | LeafAction::ReadOnlyScript
                | LeafAction::File(_) => planned.steps.push(SequenceStep {
                    label: step.label.clone(),
                    description: step.description.clone(),
                    command: self.command(target, &arguments)?,
                    skip: self.skip(step),
                    continue_on_failure: step.continue_on_failure,
                    parallel: step.parallel,
                }),
            }
        }
        Ok(())
    }

    fn skip(&self, step: &StepTemplate) -> Option<SkipCondition> {
        Some(match step.skip.as_ref()? {
            Skip::IfFileExists(path) => SkipCondition::FileExists(self.place(path)),
            Skip::IfFileMissing(path) => SkipCondition::FileMissing(self.place(path)),
        })
    }

    /// A path of a tool file, by the scope's own name if it lies in it.
    fn place(&self, given: &str) -> PathBuf {
        let path = paths::resolve(self.directory, given);
        match self.settings.below_scope(&path) {
            Some(below) => self.settings.scope.join(below),
            None => path,
        }
    }
}
