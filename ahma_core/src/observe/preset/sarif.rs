//! SARIF 2.1.0: results become findings, with what the log says elsewhere about their rules.
//!
//! Reads leniently: a result that makes no sense is passed over, the others are not.

use std::collections::BTreeMap;

use serde_json::{Value, value::RawValue};

use crate::observe::{
    Finding, Severity,
    framing::CUT_OFF,
    rules::{ItemPath, Sighting, shorten},
};

const MAX_TEXT_CHARS: usize = 8_000;

/// A message that is longer is shown in part, and whole as the description.
const MAX_TITLE_CHARS: usize = 300;

/// Description of a rule in the log.
#[derive(Debug, Default, Clone)]
struct RuleInfo {
    id: String,
    level: Option<String>,
    /// A CVSS score, by a convention that most analysers follow.
    score: Option<Severity>,
    cwe: Option<String>,
    help: Option<String>,
    messages: BTreeMap<String, String>,
}

/// Notes every result that is a problem: not those that passed, were suppressed, or are gone since the last run.
pub(crate) fn read_sarif(text: &str, note: &mut dyn FnMut(Sighting)) {
    let Ok(log) = serde_json::from_str::<&RawValue>(text) else {
        return;
    };
    for run in items("/runs/*", log) {
        let mut rules: Vec<RuleInfo> = values("/tool/driver/rules", run)
            .map(|rule| RuleInfo::read(&rule))
            .collect();
        let driver_rules = rules.len();
        rules.extend(values("/tool/extensions/*/rules/*", run).map(|rule| RuleInfo::read(&rule)));
        let by_id: BTreeMap<&str, &RuleInfo> =
            rules.iter().rev().map(|rule| (rule.id.as_str(), rule)).collect();
        for result in values("/results", run) {
            let index = result
                .get("ruleIndex")
                .and_then(Value::as_u64)
                .and_then(|index| usize::try_from(index).ok());
            let by_index = || rules[..driver_rules].get(index?);
            let id = text_at(&result, "/ruleId").or_else(|| text_at(&result, "/rule/id"));
            let rule = id.and_then(|id| by_id.get(id).copied()).or_else(by_index);
            if is_problem(&result) {
                note(Sighting::Finding(finding(
                    &result,
                    id,
                    rule.unwrap_or(&RuleInfo::default()),
                )));
            }
        }
    }
}

fn items<'a>(path: &str, root: &'a RawValue) -> Vec<&'a RawValue> {
    ItemPath::parse(path)
        .map(|path| path.items(root))
        .unwrap_or_default()
}

fn values<'a>(path: &str, root: &'a RawValue) -> impl Iterator<Item = Value> + use<'a> {
    items(path, root)
        .into_iter()
        .filter_map(|item| serde_json::from_str(item.get()).ok())
}

fn text_at<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer)?.as_str().filter(|text| !text.is_empty())
}

fn is_problem(result: &Value) -> bool {
    let is_harmless = matches!(text_at(result, "/kind"), Some("pass" | "notApplicable"));
    let is_gone = text_at(result, "/baselineState") == Some("absent");
    let is_suppressed = result
        .get("suppressions")
        .and_then(Value::as_array)
        .is_some_and(|suppressions| {
            suppressions
                .iter()
                .any(|one| matches!(text_at(one, "/status"), None | Some("accepted")))
        });
    let is_whole = result.is_object() && result.get(CUT_OFF).is_none();
    is_whole && !is_harmless && !is_gone && !is_suppressed
}

fn finding(result: &Value, id: Option<&str>, rule: &RuleInfo) -> Finding {
    let id = match id {
        Some(id) => id.to_owned(),
        None if !rule.id.is_empty() => rule.id.clone(),
        None => "sarif".to_owned(),
    };
    // What our own logs say besides the standard.
    let property = |name: &str| text_at(result, &format!("/properties/{name}")).map(str::to_owned);
    let (title, message) = titled(message(result, rule), property("title"));
    let fix = text_at(result, "/fixes/0/description/text").map(str::to_owned);
    let help = rule.help.clone();
    let help = help.filter(|help| Some(help) != message.as_ref() && Some(help) != title.as_ref());
    let remediation = fix.or_else(|| property("remediation")).or(help);
    let is_cve = id.to_ascii_uppercase().starts_with("CVE-");
    Finding {
        severity: severity(result, rule),
        kind: Some(property("kind").unwrap_or_else(|| "sast".to_owned())),
        cve: property("cve").or_else(|| is_cve.then(|| id.clone())),
        cwe: property("cwe").or_else(|| rule.cwe.clone()),
        title: title.unwrap_or_else(|| id.clone()),
        id,
        description: message.map(|text| shorten(text, MAX_TEXT_CHARS)),
        remediation: remediation.map(|text| shorten(text, MAX_TEXT_CHARS)),
        location: location(result),
    }
}

/// The title, and what the message says besides. Where the log has no title of its own, the message begins with one.
fn titled(message: Option<String>, title: Option<String>) -> (Option<String>, Option<String>) {
    let Some(message) = message else {
        return (title, None);
    };
    let Some(title) = title else {
        let (first, rest) = message.split_once('\n').unwrap_or((&message, ""));
        let title = shorten(first.trim_end().to_owned(), MAX_TITLE_CHARS);
        let is_whole = rest.trim().is_empty() && title == first.trim_end();
        return (Some(title), (!is_whole).then_some(message));
    };
    let rest = match message.strip_prefix(&title) {
        Some("") => None,
        Some(rest) => Some(rest.strip_prefix(": ").map_or(message.clone(), str::to_owned)),
        None => Some(message),
    };
    (Some(title), rest)
}

fn severity(result: &Value, rule: &RuleInfo) -> Severity {
    let own_score = score(result);
    let level = text_at(result, "/level").or(rule.level.as_deref());
    own_score.or(rule.score).unwrap_or(match level {
        Some("error") => Severity::High,
        Some("note") => Severity::Low,
        Some("none") => Severity::Info,
        // The standard's default is a warning.
        _ => Severity::Medium,
    })
}

fn score(value: &Value) -> Option<Severity> {
    let score = value.pointer("/properties/security-severity")?;
    Severity::parse(&score.as_str().map_or_else(|| score.to_string(), str::to_owned))
}

fn message(result: &Value, rule: &RuleInfo) -> Option<String> {
    let direct = text_at(result, "/message/text").or_else(|| text_at(result, "/message/markdown"));
    let template = match direct {
        Some(text) => text,
        None => rule.messages.get(text_at(result, "/message/id")?)?,
    };
    let arguments = result.pointer("/message/arguments").and_then(Value::as_array);
    let fill = |text: String, (index, argument): (usize, &Value)| match argument.as_str() {
        Some(argument) => text.replace(&format!("{{{index}}}"), argument),
        None => text,
    };
    Some(
        arguments
            .into_iter()
            .flatten()
            .enumerate()
            .fold(template.to_owned(), fill),
    )
}

fn location(result: &Value) -> Option<String> {
    let place = result.pointer("/locations/0/physicalLocation");
    let Some(uri) = place.and_then(|place| text_at(place, "/artifactLocation/uri")) else {
        return text_at(result, "/locations/0/logicalLocations/0/fullyQualifiedName").map(str::to_owned);
    };
    let mut location = match uri.strip_prefix("file://") {
        Some(path) => decoded(path),
        None if uri.contains("://") => uri.to_owned(),
        None => decoded(uri),
    };
    for pointer in ["/region/startLine", "/region/startColumn"] {
        let Some(number) = place
            .and_then(|place| place.pointer(pointer))
            .and_then(Value::as_u64)
        else {
            break;
        };
        location.push_str(&format!(":{number}"));
    }
    Some(location)
}

impl RuleInfo {
    fn read(rule: &Value) -> Self {
        let tags = rule.pointer("/properties/tags").and_then(Value::as_array);
        let messages = rule.get("messageStrings").and_then(Value::as_object);
        Self {
            id: text_at(rule, "/id").unwrap_or_default().to_owned(),
            level: text_at(rule, "/defaultConfiguration/level").map(str::to_owned),
            score: score(rule),
            cwe: tags
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .find_map(cwe_of_tag),
            help: text_at(rule, "/help/text").map(str::to_owned),
            messages: messages
                .into_iter()
                .flatten()
                .filter_map(|(id, message)| Some((id.clone(), text_at(message, "/text")?.to_owned())))
                .collect(),
        }
    }
}

/// Tags say it as `CWE-95: Eval Injection` or as `external/cwe/cwe-095`.
fn cwe_of_tag(tag: &str) -> Option<String> {
    if tag.to_ascii_uppercase().starts_with("CWE-") {
        return Some(tag.to_owned());
    }
    let number = tag.strip_prefix("external/cwe/cwe-")?.trim_start_matches('0');
    Some(format!("CWE-{number}"))
}

/// A relative reference as the path it stands for.
fn decoded(uri: &str) -> String {
    let mut bytes = Vec::with_capacity(uri.len());
    let mut rest = uri.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        let digits = behind.get(..2).filter(|_| byte == b'%');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(escaped.unwrap_or(byte));
        rest = if escaped.is_some() { &behind[2..] } else { behind };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
