//! Checks the arguments of a call against the parameters of a tool.
//!
//! Meta-parameters are not known here: a caller takes them out first.

use std::{
    borrow::Cow,
    fmt,
    sync::{Arc, LazyLock},
};

use serde_json::{Map, Value};

use super::{
    argument_names::{plain_name, suggestion},
    tool::{Dash, Form, Parameter},
    value::{Scalar, ValueType},
};

/// One thing that is wrong with the arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentProblem {
    pub argument: String,
    pub message: String,
}

impl ArgumentProblem {
    pub(crate) fn new(argument: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            argument: argument.into(),
            message: message.into(),
        }
    }
}

impl fmt::Display for ArgumentProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`{}` {}", self.argument, self.message)
    }
}

/// The value a call gives to one parameter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Given<'a> {
    /// It, or its default, in the form of the parameter's type.
    Value(Cow<'a, Value>),
    Nothing,
    /// It is among the problems, and there is no value to go on with.
    Wrong,
}

/// Gives the value of each parameter, in their order, and everything that is wrong.
/// `null` counts as not given, because many clients send it for what they leave out. `meta_names` are the meta-parameters that
/// the caller may give, too.
pub(crate) fn accept<'a>(
    parameters: impl Iterator<Item = &'a Arc<Parameter>>,
    arguments: &'a Map<String, Value>,
    meta_names: &[&str],
) -> (Vec<Given<'a>>, Vec<ArgumentProblem>) {
    let parameters: Vec<&Arc<Parameter>> = parameters.collect();
    let mut given: Vec<Vec<(&str, &Value)>> = vec![Vec::new(); parameters.len()];
    let mut unknown = Vec::new();
    for (name, value) in arguments {
        match called(&parameters, name) {
            Some(_) if value.is_null() => {}
            Some(index) => given[index].push((name, value)),
            None => unknown.push(name),
        }
    }
    let mut problems = Vec::new();
    let values = parameters
        .iter()
        .zip(given)
        .map(|(parameter, given)| value_of(parameter, &given, &mut problems))
        .collect();
    let own = parameters.iter().map(|parameter| parameter.name.as_str());
    let known: Vec<&str> = own.chain(meta_names.iter().copied()).collect();
    for name in unknown {
        let message = match suggestion(name, &known) {
            Some(meant) => format!("is not an argument of this tool; did you mean `{meant}`?"),
            None if parameters.is_empty() => "is not an argument of this tool, which takes none".into(),
            None => "is not an argument of this tool".into(),
        };
        problems.push(ArgumentProblem::new(name, message));
    }
    (values, problems)
}

/// The parameter that has the name, or the only one that has it in another spelling, or in the other number: `path` for
/// `paths`.
fn called(parameters: &[&Arc<Parameter>], name: &str) -> Option<usize> {
    let wanted = plain_name(name);
    let only = |is_meant: &dyn Fn(&str) -> bool| {
        let mut meant = (0..parameters.len()).filter(|index| parameters[*index].names().any(is_meant));
        meant.next().filter(|_| meant.next().is_none())
    };
    only(&|own| own == name)
        .or_else(|| only(&|own| plain_name(own) == wanted))
        .or_else(|| only(&|own| differ_in_number(&plain_name(own), &wanted)))
}

/// Short names are left alone: `a` and `as` have nothing in common.
fn differ_in_number(one: &str, other: &str) -> bool {
    let is_plural = |many: &str, one: &str| one.len() > 2 && many.strip_suffix('s') == Some(one);
    is_plural(one, other) || is_plural(other, one)
}

fn value_of<'a>(
    parameter: &'a Parameter,
    given: &[(&str, &'a Value)],
    problems: &mut Vec<ArgumentProblem>,
) -> Given<'a> {
    let value = match given {
        [] if parameter.required => {
            problems.push(ArgumentProblem::new(&parameter.name, "is required"));
            return Given::Wrong;
        }
        [] => {
            return parameter
                .default
                .as_ref()
                .map_or(Given::Nothing, |default| Given::Value(Cow::Borrowed(default)));
        }
        [(_, value)] => parameter.value.coerce(value),
        [..] => {
            let other = given
                .iter()
                .map(|(name, _)| *name)
                .find(|name| *name != parameter.name);
            let message = format!("is given twice, also as `{}`", other.unwrap_or_default());
            problems.push(ArgumentProblem::new(&parameter.name, message));
            return Given::Wrong;
        }
    };
    let mut objections = parameter.value.objections(&value);
    if parameter.required && value.as_array().is_some_and(Vec::is_empty) {
        objections.push("must not be empty".into());
    }
    if objections.is_empty() {
        return Given::Value(value);
    }
    let objections = objections.into_iter();
    problems.extend(objections.map(|objection| ArgumentProblem::new(&parameter.name, objection)));
    Given::Wrong
}

/// The script of the built-in shell.
static SCRIPT: LazyLock<Arc<Parameter>> = LazyLock::new(|| {
    Arc::new(Parameter {
        name: "command".into(),
        alias: None,
        aliases: ["cmd", "script"].map(str::to_owned).into(),
        description: None,
        value: ValueType::Scalar(Scalar::String { choices: Vec::new() }),
        required: true,
        default: None,
        form: Form::Positional(Dash::Verbatim),
    })
});

/// The script in the arguments of the built-in shell tool. `meta_names` is as for [`accept`].
pub(crate) fn shell_command(
    arguments: &Map<String, Value>,
    meta_names: &[&str],
) -> Result<String, Vec<ArgumentProblem>> {
    let (values, mut problems) = accept([&*SCRIPT].into_iter(), arguments, meta_names);
    let script = match values.first() {
        Some(Given::Value(script)) => script.as_str().unwrap_or_default().to_owned(),
        _ => return Err(problems),
    };
    if script.trim().is_empty() {
        problems.insert(0, ArgumentProblem::new("command", "must not be empty"));
    }
    if problems.is_empty() {
        Ok(script)
    } else {
        Err(problems)
    }
}
