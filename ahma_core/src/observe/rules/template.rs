//! Templates: text with references to fields, and the translation of what they give.

use std::{borrow::Cow, collections::BTreeMap};

use ahma_common::words::shorten;

use super::{
    super::Severity,
    field::{Field, Piece},
};

/// Left at the ends of a template's text when the field next to them is missing.
const SEPARATORS: [char; 6] = [':', '-', ',', ';', '/', '|'];

/// A template, parsed. References were checked when it was made.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Template {
    parts: Vec<TemplatePart>,
}

#[derive(Debug, Clone, PartialEq)]
enum TemplatePart {
    Literal(String),
    Reference(Field),
}

/// A template with its translation.
#[derive(Debug, Clone)]
pub(crate) struct TextSource {
    pub(super) template: Template,
    pub(super) map: BTreeMap<String, String>,
    pub(super) default: Option<String>,
}

impl Template {
    /// Parses a template; `resolve` says which field a reference names, or why there is none.
    pub(super) fn parse(text: &str, resolve: impl Fn(&str) -> Result<Field, String>) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(brace) = rest.find(['{', '}']) {
            literal.push_str(&rest[..brace]);
            let found = &rest[brace..];
            if found.starts_with("{{") || found.starts_with("}}") {
                literal.push_str(&found[..1]);
                rest = &found[2..];
                continue;
            }
            let reference = found
                .strip_prefix('{')
                .ok_or("a `}` without its `{` (write `}}` for a brace)")?
                .split_once('}')
                .ok_or("a `{` without its `}` (write `{{` for a brace)")?;
            if !literal.is_empty() {
                parts.push(TemplatePart::Literal(std::mem::take(&mut literal)));
            }
            parts.push(TemplatePart::Reference(resolve(reference.0)?));
            rest = reference.1;
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(TemplatePart::Literal(literal));
        }
        Ok(Self { parts })
    }

    /// The arguments of the call that it names.
    pub(super) fn arguments(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            TemplatePart::Reference(Field::Argument(name)) => Some(name.as_str()),
            TemplatePart::Reference(_) | TemplatePart::Literal(_) => None,
        })
    }

    /// The text, if it holds no reference.
    pub(super) fn as_literal(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [TemplatePart::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// Fills in the fields. Separators that a missing field leaves at either end are dropped: `file::` becomes `file`.
    fn render(&self, piece: &Piece<'_>) -> String {
        let mut text = String::new();
        let mut is_complete = true;
        for part in &self.parts {
            match part {
                TemplatePart::Literal(literal) => text.push_str(literal),
                TemplatePart::Reference(field) => match piece.get(field).as_deref().map(str::trim) {
                    Some(value) if !value.is_empty() => text.push_str(value),
                    _ => is_complete = false,
                },
            }
        }
        let trimmed = match is_complete {
            true => text.trim(),
            false => text.trim_matches(|c: char| c.is_whitespace() || SEPARATORS.contains(&c)),
        };
        trimmed.to_owned()
    }
}

impl TextSource {
    /// The translated text, at most `max_chars` of it; none when there is nothing to say.
    pub(crate) fn text(&self, piece: &Piece<'_>, max_chars: usize) -> Option<String> {
        let text = self.template.render(piece);
        if text.is_empty() {
            return self.default.clone();
        }
        if self.map.is_empty() {
            return Some(shorten(text, max_chars));
        }
        let translated = self.map.get(&text).or(self.default.as_ref()).cloned();
        Some(translated.unwrap_or_else(|| shorten(text, max_chars)))
    }

    /// A number, if the text is one. A percent sign, thousands separators and a decimal comma are allowed.
    pub(crate) fn number(&self, piece: &Piece<'_>) -> Option<f64> {
        let text = self.text(piece, 64)?;
        let digits = text.trim_end_matches('%').trim_end().replace('_', "");
        let number: Option<f64> = with_decimal_point(&digits).parse().ok();
        number.filter(|number| number.is_finite())
    }

    /// A number of seconds, written as such or as `h:mm:ss` or `mm:ss`.
    pub(crate) fn seconds(&self, piece: &Piece<'_>) -> Option<f64> {
        let text = self.text(piece, 64)?;
        let add = |total: f64, part: &str| {
            part.trim()
                .parse::<f64>()
                .ok()
                .map(|number| total * 60.0 + number)
        };
        let seconds = text.trim_end_matches('s').split(':').try_fold(0.0, add)?;
        (seconds.is_finite() && seconds >= 0.0).then_some(seconds)
    }

    /// A severity; the default, or info, if the text is not a word for one.
    pub(crate) fn severity(&self, piece: &Piece<'_>) -> Severity {
        let text = self.text(piece, 64);
        let parse = |text: &String| Severity::parse(text);
        text.as_ref()
            .and_then(parse)
            .or(self.default.as_ref().and_then(parse))
            .unwrap_or(Severity::Info)
    }
}

/// The number as Rust reads it. A comma separates thousands where three digits follow it, and is a decimal point elsewhere.
fn with_decimal_point(number: &str) -> Cow<'_, str> {
    let Some((whole, fraction)) = number.split_once(',') else {
        return number.into();
    };
    let (grouped, decimals) = number.split_once('.').unwrap_or((number, ""));
    match (without_groups(grouped, ','), without_groups(whole, '.')) {
        (Some(digits), _) => format!("{digits}.{decimals}").into(),
        (None, Some(digits)) => format!("{digits}.{fraction}").into(),
        (None, None) => format!("{whole}.{fraction}").into(),
    }
}

/// `1,234,567` without its commas; none if there are none, or they do not separate thousands.
fn without_groups(digits: &str, separator: char) -> Option<String> {
    let (first, groups) = digits.split_once(separator)?;
    let is_number = !first.starts_with('0') && (1..=3).contains(&first.trim_start_matches('-').len());
    let are_thousands = groups
        .split(separator)
        .all(|group| group.len() == 3 && group.bytes().all(|byte| byte.is_ascii_digit()));
    (is_number && are_thousands).then(|| digits.replace(separator, ""))
}
