//! Validation of options and positional arguments.

use std::{collections::HashMap, fmt, sync::Arc};

use ahma_common::nearest;
use serde_json::Value;

use super::{
    file::{FormatFile, ItemsFile, ParameterFile, PassthroughFile, TypeFile},
    name::MAX_ARGUMENT_LENGTH,
    problem::{Mistake, child},
    tool::{Dash, Form, META_PARAMETERS, Parameter, Slot, ValueStyle},
    value::{Range, Scalar, ValueType},
};

/// The list a parameter stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParameterKind {
    /// With the style of options that do not choose one themselves.
    Option(ValueStyle),
    Positional,
}

/// The parameters of one command line so far, by name and alias, with the pointer of each.
#[derive(Debug, Clone, Default)]
pub(super) struct Parameters {
    taken: HashMap<String, String>,
    /// The one whose value is the standard input.
    stdin: Option<String>,
}

impl Parameters {
    pub(super) fn has(&self, name: &str) -> bool {
        self.taken.contains_key(name)
    }

    /// The nearest name to one that there is not.
    pub(super) fn nearest(&self, name: &str) -> Option<&str> {
        nearest(name, self.taken.keys().map(String::as_str))
            .first()
            .copied()
    }

    /// Validates a list and gives the slots that it makes.
    pub(super) fn add(
        &mut self,
        list: Vec<ParameterFile>,
        pointer: &str,
        place: ParameterKind,
        mistakes: &mut Vec<Mistake>,
    ) -> Vec<Slot> {
        let mut slots = Vec::with_capacity(list.len());
        let mut optional: Option<String> = None;
        for (index, raw) in list.into_iter().enumerate() {
            let mut check = ParameterCheck {
                pointer: child(pointer, index),
                place,
                mistakes,
            };
            self.claim(&raw.name, "name", &mut check);
            if let Some(alias) = &raw.alias {
                self.claim(alias, "alias", &mut check);
            }
            for (index, alias) in raw.aliases.iter().flatten().enumerate() {
                self.claim(alias, &format!("aliases/{index}"), &mut check);
            }
            let Some(parameter) = check.parameter(raw) else {
                continue;
            };
            if parameter.form == Form::Stdin {
                match &self.stdin {
                    Some(first) => check.error("stdin", format!("is set already, at `{first}`")),
                    None => self.stdin = Some(check.pointer.clone()),
                }
            } else if place == ParameterKind::Positional {
                match &optional {
                    Some(earlier) if parameter.required => {
                        let message = format!(
                            "`{}` is required, but comes after `{earlier}`, which is not",
                            parameter.name
                        );
                        let pointer = child(&check.pointer, "required");
                        check.mistakes.push(Mistake::warning(pointer, message));
                    }
                    _ if !parameter.required && parameter.default.is_none() => {
                        optional = Some(parameter.name.clone())
                    }
                    _ => {}
                }
            }
            slots.push(Slot::Parameter(Arc::new(parameter)));
        }
        slots
    }

    fn claim(&mut self, name: &str, field: &str, check: &mut ParameterCheck<'_>) {
        if META_PARAMETERS.contains(&name) {
            check.error(
                field,
                format!("cannot be `{name}`, which is an argument of every tool"),
            );
            return;
        }
        match self.taken.get(name) {
            Some(first) => check.error(field, format!("`{name}` is taken already, at `{first}`")),
            None => {
                self.taken.insert(name.to_owned(), check.pointer.clone());
            }
        }
    }
}

/// Checks of one parameter.
struct ParameterCheck<'m> {
    pointer: String,
    place: ParameterKind,
    mistakes: &'m mut Vec<Mistake>,
}

impl ParameterCheck<'_> {
    /// `message` goes on after the name of the field.
    fn error(&mut self, field: &str, message: impl fmt::Display) {
        self.error_in("", field, message);
    }

    fn parameter(&mut self, raw: ParameterFile) -> Option<Parameter> {
        if let Some(message) = name_objection(&raw.name) {
            self.error("name", message);
        }
        if let Some(message) = raw.alias.as_deref().and_then(name_objection) {
            self.error("alias", message);
        }
        for (index, alias) in raw.aliases.iter().flatten().enumerate() {
            if let Some(message) = name_objection(alias) {
                self.error(&format!("aliases/{index}"), message);
            }
        }
        let value = self.value_type(&raw)?;
        if let Some(default) = &raw.default {
            self.check_default(&value, default);
        }
        let required = raw.required.unwrap_or(false);
        if required && raw.default.is_some() {
            let pointer = child(&self.pointer, "required");
            self.mistakes.push(Mistake::warning(
                pointer,
                "`required` has no effect with a `default`",
            ));
        }
        let form = match self.place {
            _ if raw.stdin == Some(true) => self.stdin_form(&raw, &value),
            ParameterKind::Option(style) => self.option_form(&raw, &value, style),
            ParameterKind::Positional => self.positional_form(&raw, &value),
        };
        Some(Parameter {
            required: required && raw.default.is_none(),
            name: raw.name,
            alias: raw.alias,
            aliases: raw.aliases.unwrap_or_default(),
            description: raw.description,
            value,
            default: raw.default,
            form,
        })
    }

    fn check_default(&mut self, value: &ValueType, default: &Value) {
        if let (ValueType::Array(scalar), Value::Array(items)) = (value, default) {
            for (index, item) in items.iter().enumerate() {
                if let Some(objection) = scalar.objection(item) {
                    self.error(&format!("default/{index}"), objection);
                }
            }
            return;
        }
        for objection in value.objections(default) {
            self.error("default", objection);
        }
    }

    fn option_form(&mut self, raw: &ParameterFile, value: &ValueType, inherited: ValueStyle) -> Form {
        let flag = flag(&raw.name, raw.alias.as_deref());
        let is_array = matches!(value, ValueType::Array(_));
        if raw.passthrough.is_some() {
            self.error("passthrough", "is for positional arguments only");
        }
        if raw.repeat.is_some() && !is_array {
            self.error("repeat", "is for arrays only");
        }
        if raw.file_flag.is_some() && raw.file_arg != Some(true) {
            self.error("file_flag", "needs `\"file_arg\": true`");
        }
        if raw.file_arg == Some(true) {
            if !matches!(value, ValueType::Scalar(Scalar::String { .. })) {
                self.error("file_arg", "is for options of type string only, without `format`");
            }
            return Form::File(raw.file_flag.clone().unwrap_or(flag));
        }
        let style = raw.value_style.unwrap_or(inherited);
        if raw.repeat == Some(false) {
            Form::FlagOnce(flag)
        } else {
            Form::Flag(flag, style)
        }
    }

    fn stdin_form(&mut self, raw: &ParameterFile, value: &ValueType) -> Form {
        if !matches!(value, ValueType::Scalar(Scalar::String { .. })) {
            self.error("stdin", "is for arguments of type string only, without `format`");
        }
        let on_the_line = [
            ("alias", raw.alias.is_some()),
            ("value_style", raw.value_style.is_some()),
            ("file_arg", raw.file_arg.is_some()),
            ("file_flag", raw.file_flag.is_some()),
            ("passthrough", raw.passthrough.is_some()),
        ];
        let message = "has no meaning beside `stdin`: nothing of it is on the command line";
        self.refuse("", &on_the_line, message);
        Form::Stdin
    }

    fn positional_form(&mut self, raw: &ParameterFile, value: &ValueType) -> Form {
        let option_only = [
            ("alias", raw.alias.is_some()),
            ("repeat", raw.repeat.is_some()),
            ("value_style", raw.value_style.is_some()),
            ("file_arg", raw.file_arg.is_some()),
            ("file_flag", raw.file_flag.is_some()),
        ];
        self.refuse("", &option_only, "is for options only");
        if *value == ValueType::Boolean {
            self.error(
                "type",
                "cannot be boolean: a positional argument has no flag to leave out",
            );
        }
        Form::Positional(match raw.passthrough {
            None => Dash::Guarded,
            Some(PassthroughFile::Verbatim) => Dash::Verbatim,
            Some(PassthroughFile::AfterSeparator) => Dash::AfterSeparator,
        })
    }

    fn value_type(&mut self, raw: &ParameterFile) -> Option<ValueType> {
        if raw.items.is_some() && raw.kind != TypeFile::Array {
            self.error("items", "is for type array only");
        }
        let own = ItemsFile {
            kind: raw.kind,
            description: None,
            format: raw.format,
            choices: raw.choices.clone(),
            minimum: raw.minimum,
            maximum: raw.maximum,
        };
        match raw.kind {
            TypeFile::Boolean => {
                self.refuse_limits(&own, "", "a boolean");
                Some(ValueType::Boolean)
            }
            TypeFile::Array => {
                let mut items = raw.items.clone().unwrap_or_default();
                // With `type: array`, a format applies to every element.
                items.format = items.format.or(raw.format);
                self.refuse_limits(
                    &ItemsFile { format: None, ..own },
                    "",
                    "an array, but can be given in its `items`",
                );
                self.scalar(&items, "items/").map(ValueType::Array)
            }
            TypeFile::String | TypeFile::Integer | TypeFile::Number => {
                self.scalar(&own, "").map(ValueType::Scalar)
            }
        }
    }

    fn scalar(&mut self, raw: &ItemsFile, prefix: &str) -> Option<Scalar> {
        let is_number = matches!(raw.kind, TypeFile::Integer | TypeFile::Number);
        if is_number && raw.format.is_some() {
            self.error_in(prefix, "format", "is for strings only");
        }
        if !is_number {
            let limits = [
                ("minimum", raw.minimum.is_some()),
                ("maximum", raw.maximum.is_some()),
            ];
            self.refuse(prefix, &limits, "is for type integer and number only");
        }
        match raw.kind {
            TypeFile::Boolean | TypeFile::Array => {
                self.error_in(
                    prefix,
                    "type",
                    "must be string, integer or number for the elements of an array",
                );
                None
            }
            TypeFile::String if raw.format == Some(FormatFile::Path) => {
                if raw.choices.is_some() {
                    self.error_in(prefix, "enum", "cannot be combined with `\"format\": \"path\"`");
                }
                Some(Scalar::Path)
            }
            TypeFile::String => {
                let any = Scalar::String { choices: Vec::new() };
                let choices = self.choices(raw, prefix, any).into_iter();
                let texts = choices.filter_map(|choice| Some(choice.as_str()?.to_owned()));
                Some(Scalar::String {
                    choices: texts.collect(),
                })
            }
            TypeFile::Integer => Some(Scalar::Integer(self.range(raw, prefix, Scalar::Integer))),
            TypeFile::Number => Some(Scalar::Number(self.range(raw, prefix, Scalar::Number))),
        }
    }

    fn range(&mut self, raw: &ItemsFile, prefix: &str, scalar: fn(Range) -> Scalar) -> Range {
        let range = Range {
            minimum: raw.minimum,
            maximum: raw.maximum,
            choices: Vec::new(),
        };
        if let (Some(minimum), Some(maximum)) = (raw.minimum, raw.maximum)
            && minimum > maximum
        {
            self.error_in(prefix, "minimum", format!("is larger than `maximum` ({maximum})"));
            return Range::default();
        }
        let choices = self.choices(raw, prefix, scalar(range.clone()));
        Range {
            choices: choices.iter().filter_map(Value::as_f64).collect(),
            ..range
        }
    }

    /// The values of `enum`, each of which must fit `scalar`.
    fn choices(&mut self, raw: &ItemsFile, prefix: &str, scalar: Scalar) -> Vec<Value> {
        let Some(choices) = &raw.choices else {
            return Vec::new();
        };
        if choices.is_empty() {
            self.error_in(prefix, "enum", "must not be empty");
        }
        for (index, choice) in choices.iter().enumerate() {
            if let Some(objection) = scalar.objection(choice) {
                self.error_in(prefix, &format!("enum/{index}"), objection);
            }
            if choices[..index].contains(choice) {
                self.error_in(prefix, &format!("enum/{index}"), "is a repetition");
            }
        }
        choices.clone()
    }

    fn refuse_limits(&mut self, raw: &ItemsFile, prefix: &str, of_what: &str) {
        let limits = [
            ("format", raw.format.is_some()),
            ("enum", raw.choices.is_some()),
            ("minimum", raw.minimum.is_some()),
            ("maximum", raw.maximum.is_some()),
        ];
        self.refuse(prefix, &limits, &format!("has no meaning for {of_what}"));
    }

    /// Refuses the fields that are given.
    fn refuse(&mut self, prefix: &str, fields: &[(&str, bool)], message: &str) {
        for (field, _) in fields.iter().filter(|(_, is_given)| *is_given) {
            self.error_in(prefix, field, message);
        }
    }

    /// As `error`, below the member `prefix`; `field` may be a path, too.
    fn error_in(&mut self, prefix: &str, field: &str, message: impl fmt::Display) {
        let pointer = format!("{}/{prefix}{field}", self.pointer);
        let (name, element) = field
            .split_once('/')
            .map_or((field, String::new()), |(name, index)| {
                (name, format!(" element {index}"))
            });
        self.mistakes
            .push(Mistake::error(pointer, format!("`{name}`{element} {message}")));
    }
}

/// The flag as it stands on the command line.
fn flag(name: &str, alias: Option<&str>) -> String {
    match alias {
        Some(alias) if alias.starts_with('-') => alias.to_owned(),
        Some(alias) => format!("-{alias}"),
        None if name.starts_with('-') => name.to_owned(),
        None => format!("--{name}"),
    }
}

fn name_objection(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("must not be empty".into());
    }
    if name.trim_matches('-').is_empty() {
        return Some(format!("cannot be `{name}`: it needs a letter or a digit"));
    }
    if name.len() > MAX_ARGUMENT_LENGTH {
        return Some(format!(
            "is {} characters long; {MAX_ARGUMENT_LENGTH} are allowed",
            name.len()
        ));
    }
    let bad = name
        .chars()
        .find(|letter| !(letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.')))?;
    Some(format!(
        "contains {bad:?}; letters, digits, `_`, `-` and `.` are allowed"
    ))
}
