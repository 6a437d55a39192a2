//! From the words of a command line to the arguments of a call.
//!
//! Only the shape is decided here: which word is a name and which a value, and of which type. Whether a value fits is
//! for the plan to say; a text that cannot be read as its type is passed on as text, and refused there by name.

use serde_json::{Map, Number, Value};

use crate::{
    call::ArgumentProblem,
    catalog::Tool,
    mtdf::{Action, Dash, Form},
};

/// The arguments, and what was wrong with the words.
pub(super) fn read(tool: &Tool, words: &[String]) -> (Map<String, Value>, Vec<ArgumentProblem>) {
    let mut reading = Reading {
        tool,
        arguments: Map::new(),
        problems: Vec::new(),
        positional: Vec::new(),
    };
    let mut words = words.iter().map(String::as_str).peekable();
    while let Some(word) = words.next() {
        if word == "--" {
            reading.positional.extend(words.by_ref().map(str::to_owned));
        } else if let Some((name, value)) = reading.named_by(word) {
            let value = match value {
                None if reading.kind(&name) == Kind::Switch => None,
                None => words.next_if(|next| !next.starts_with("--")),
                given => given,
            };
            reading.named(name, value);
        } else if word.len() > 1 && word.starts_with('-') && !reading.takes_dashes(word) {
            let message = if reading.has_place_after_dashes() {
                "is not understood; write --NAME VALUE, and -- before words that begin with a dash"
            } else {
                "is not understood; options of this tool are written --NAME VALUE"
            };
            reading.problems.push(ArgumentProblem::new(word, message));
        } else {
            reading.positional.push(word.to_owned());
        }
    }
    reading.place_positional();
    (reading.arguments, reading.problems)
}

struct Reading<'a> {
    tool: &'a Tool,
    arguments: Map<String, Value>,
    problems: Vec<ArgumentProblem>,
    positional: Vec<String>,
}

/// How a parameter is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// No parameter of the tool; the plan says so, and what may be meant.
    Unknown,
    Switch,
    Integer,
    Number,
    Text,
    List(Element),
}

/// What a list is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Element {
    Integer,
    Number,
    Text,
}

impl Reading<'_> {
    /// The parameter that a word with dashes names, and its value if that stands in the same word.
    fn named_by<'w>(&self, word: &'w str) -> Option<(String, Option<&'w str>)> {
        if let Some(named) = word.strip_prefix("--") {
            let (name, value) = match named.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (named, None),
            };
            let name = self.name(name);
            // A script that was not quoted has options of its own programs in it.
            let is_of_a_script = self.is_script() && self.kind(&name) == Kind::Unknown;
            return (!is_of_a_script).then_some((name, value));
        }
        // Programs such as `find` have options with one dash, which is part of their names here.
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        if name.starts_with('-') && properties(self.tool).any(|(known, _)| known == name) {
            return Some((name.to_owned(), value));
        }
        let letter = word.strip_prefix('-').filter(|rest| rest.chars().count() == 1)?;
        let mut parameters = self.tool.leaf.parameters();
        let parameter = parameters.find(|parameter| parameter.alias.as_deref() == Some(letter))?;
        Some((parameter.name.clone(), None))
    }

    fn is_script(&self) -> bool {
        matches!(self.tool.leaf.action, Action::Script)
    }

    /// Whether a word that begins with a dash may be a value of this tool.
    fn has_place_after_dashes(&self) -> bool {
        let guarded = match &self.tool.leaf.action {
            Action::Command(template) => template.end_of_options,
            Action::Sequence(_) | Action::Script => false,
        };
        self.tool.leaf.parameters().any(|parameter| match parameter.form {
            Form::Positional(Dash::Guarded) => guarded,
            Form::Positional(Dash::Verbatim | Dash::AfterSeparator) => true,
            Form::Flag(..) | Form::FlagOnce(_) | Form::File(_) => false,
        })
    }

    /// The parameter that is meant: `--max-count` may be called `max_count`, `--name` may be called `-name`, and an alias is
    /// as good as a name.
    fn name(&self, written: &str) -> String {
        let bare = |name: &str| name.trim_start_matches('-').replace('-', "_");
        let same = |name: &str| bare(name) == bare(written);
        let by_alias = || {
            let parameters = self.tool.leaf.parameters();
            parameters
                .filter(|parameter| parameter.alias.as_deref().is_some_and(same))
                .map(|parameter| parameter.name.as_str())
                .next()
        };
        properties(self.tool)
            .map(|(name, _)| name)
            .find(|name| *name == written)
            .or_else(|| {
                properties(self.tool)
                    .map(|(name, _)| name)
                    .find(|name| same(name))
            })
            .or_else(by_alias)
            .unwrap_or(written)
            .to_owned()
    }

    fn kind(&self, name: &str) -> Kind {
        let schema = properties(self.tool)
            .find(|(known, _)| *known == name)
            .map(|(_, schema)| schema);
        let type_of = |schema: &Value| schema["type"].as_str().unwrap_or_default().to_owned();
        match schema.map(type_of).as_deref() {
            None => Kind::Unknown,
            Some("boolean") => Kind::Switch,
            Some("integer") => Kind::Integer,
            Some("number") => Kind::Number,
            Some("array") => Kind::List(match schema.map(|schema| type_of(&schema["items"])).as_deref() {
                Some("integer") => Element::Integer,
                Some("number") => Element::Number,
                _ => Element::Text,
            }),
            _ => Kind::Text,
        }
    }

    fn named(&mut self, name: String, value: Option<&str>) {
        if name == EXECUTION_MODE {
            self.problems.push(ArgumentProblem::new(
                name,
                "has no meaning here: the terminal always waits for the end",
            ));
            return;
        }
        let kind = self.kind(&name);
        match (kind, value) {
            (Kind::Switch | Kind::Unknown, None) => self.set(name, true.into()),
            (_, None) => self.problems.push(ArgumentProblem::new(
                &name,
                format!("needs a value; one that begins with two dashes is written --{name}=VALUE"),
            )),
            (kind, Some(value)) => self.give(name, kind, value),
        }
    }

    fn give(&mut self, name: String, kind: Kind, text: &str) {
        match kind {
            Kind::Switch => self.set(name, text.parse().map_or_else(|_| text.into(), Value::Bool)),
            Kind::Integer => self.set(name, integer(text)),
            Kind::Number => self.set(name, number(text)),
            Kind::Text | Kind::Unknown => self.set(name, text.into()),
            Kind::List(element) => {
                let value = match element {
                    Element::Integer => integer(text),
                    Element::Number => number(text),
                    Element::Text => text.into(),
                };
                let list = self
                    .arguments
                    .entry(name)
                    .or_insert_with(|| Value::Array(Vec::new()));
                if let Value::Array(list) = list {
                    list.push(value);
                }
            }
        }
    }

    fn set(&mut self, name: String, value: Value) {
        if self.arguments.insert(name.clone(), value).is_some() {
            self.problems
                .push(ArgumentProblem::new(name, "is given twice, and is no list"));
        }
    }

    /// A number below zero is a value, if a positional argument waits for one, and so is any word of a script.
    fn takes_dashes(&self, word: &str) -> bool {
        if self.is_script() {
            return true;
        }
        word.parse::<f64>().is_ok()
            && self
                .positional_names()
                .get(self.positional.len())
                .is_some_and(|name| matches!(self.kind(name), Kind::Integer | Kind::Number))
    }

    /// Words without a name go to the positional parameters that were not given by name, in order; a list takes all
    /// that are left.
    fn place_positional(&mut self) {
        let names = self.positional_names();
        let words = std::mem::take(&mut self.positional);
        if self.is_script() && words.len() > 1 {
            let script = words.join(" ");
            let quoted = shlex::try_quote(&script).map_or(script.clone(), Into::into);
            self.problems.push(ArgumentProblem::new(
                "command",
                format!(
                    "is one word here: put the script in quotes, ahma_mcp run {} {quoted}",
                    self.tool.name
                ),
            ));
            return;
        }
        let mut words = words.into_iter().peekable();
        for name in names {
            if words.peek().is_none() || self.arguments.contains_key(&name) {
                continue;
            }
            let kind = self.kind(&name);
            let count = if matches!(kind, Kind::List(_)) {
                usize::MAX
            } else {
                1
            };
            for word in words.by_ref().take(count) {
                self.give(name.clone(), kind, &word);
            }
        }
        for word in words {
            let message = "is one word more than the tool takes; --help shows its arguments";
            self.problems.push(ArgumentProblem::new(word, message));
        }
    }

    fn positional_names(&self) -> Vec<String> {
        positional_names(self.tool)
    }
}

/// Takes no part here: a terminal waits.
pub(super) const EXECUTION_MODE: &str = "execution_mode";

/// The parameters that words without a name are for.
pub(super) fn positional_names(tool: &Tool) -> Vec<String> {
    if matches!(tool.leaf.action, Action::Script) {
        return vec!["command".to_owned()];
    }
    (tool.leaf.parameters())
        .filter(|parameter| matches!(parameter.form, Form::Positional(_)))
        .map(|parameter| parameter.name.clone())
        .collect()
}

/// The parameters of a tool with their schemas.
pub(super) fn properties(tool: &Tool) -> impl Iterator<Item = (&str, &Value)> {
    let properties = tool.input_schema.get("properties").and_then(Value::as_object);
    properties
        .into_iter()
        .flatten()
        .map(|(name, schema)| (name.as_str(), schema))
}

/// A fraction stays one: the plan may take it, and says so if not.
fn integer(text: &str) -> Value {
    text.parse::<i64>().map_or_else(|_| number(text), Value::from)
}

fn number(text: &str) -> Value {
    let number = text.parse::<f64>().ok().and_then(Number::from_f64);
    number.map_or_else(|| text.into(), Value::Number)
}

#[cfg(test)]
#[path = "words_tests.rs"]
mod tests;
