//! SARIF 2.1.0: results become findings, with what the log says elsewhere about their rules.
//!
//! Reads leniently: a result that makes no sense is passed over, the others are not.

use std::collections::BTreeMap;

use ahma_common::words::shorten;
use percent_encoding::percent_decode_str;
use serde_json::{Value, value::RawValue};

use crate::observe::{
    Finding, Severity,
    framing::CUT_OFF,
    rules::{ItemPath, Sighting},
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

/// The base URIs of a run's files.
#[derive(Debug, Default)]
struct RunInfo {
    /// Addresses that others are relative to.
    bases: BTreeMap<String, String>,
    /// Locations that results name by their index.
    artifacts: Vec<Value>,
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
        let around = RunInfo::read(run);
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
                    &around,
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

fn finding(result: &Value, id: Option<&str>, rule: &RuleInfo, run: &RunInfo) -> Finding {
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
        location: location(result, run),
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
    Some(filled(template, arguments.map_or(&[], Vec::as_slice)))
}

/// Puts arguments in the place of `{0}` and its like; doubled braces are braces. What an argument holds stays as it is.
fn filled(template: &str, arguments: &[Value]) -> String {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(brace) = rest.find(['{', '}']) {
        text.push_str(&rest[..brace]);
        rest = &rest[brace..];
        let named = rest.strip_prefix('{').and_then(|inside| inside.split_once('}'));
        let argument = named.and_then(|(index, behind)| {
            let index: usize = index.parse().ok()?;
            Some((arguments.get(index)?.as_str()?, behind))
        });
        rest = match argument {
            Some((argument, behind)) => {
                text.push_str(argument);
                behind
            }
            None => {
                text.push_str(&rest[..1]);
                let doubled = rest[..1].repeat(2);
                rest.strip_prefix(doubled.as_str()).unwrap_or(&rest[1..])
            }
        };
    }
    text.push_str(rest);
    text
}

fn location(result: &Value, run: &RunInfo) -> Option<String> {
    let place = result.pointer("/locations/0/physicalLocation");
    let artifact = place.and_then(|place| place.get("artifactLocation"));
    let Some(mut location) = artifact.and_then(|artifact| run.path(artifact)) else {
        return text_at(result, "/locations/0/logicalLocations/0/fullyQualifiedName").map(str::to_owned);
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

impl RunInfo {
    fn read(run: &RawValue) -> Self {
        let fields: BTreeMap<String, &RawValue> = serde_json::from_str(run.get()).unwrap_or_default();
        let bases = fields.get("originalUriBaseIds").map(|bases| bases.get());
        let bases: BTreeMap<String, Value> = bases
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default();
        Self {
            bases: bases
                .into_iter()
                .filter_map(|(name, base)| Some((name, text_at(&base, "/uri")?.to_owned())))
                .collect(),
            artifacts: values("/artifacts", run)
                .map(|artifact| artifact.get("location").cloned().unwrap_or_default())
                .collect(),
        }
    }

    /// The path of an artifact: by its own address, or by its place in the list, below the base it names.
    fn path(&self, artifact: &Value) -> Option<String> {
        let listed = || {
            let index = usize::try_from(artifact.get("index")?.as_u64()?).ok()?;
            self.artifacts.get(index)
        };
        let artifact = match text_at(artifact, "/uri") {
            Some(_) => artifact,
            None => listed()?,
        };
        let uri = text_at(artifact, "/uri")?;
        let base = text_at(artifact, "/uriBaseId").and_then(|base| self.bases.get(base));
        let uri = match base {
            Some(base) if !uri.contains("://") && !uri.starts_with('/') => {
                format!("{}/{uri}", base.trim_end_matches('/'))
            }
            _ => uri.to_owned(),
        };
        Some(match uri.strip_prefix("file://") {
            Some(path) => decoded(path),
            None if uri.contains("://") => uri,
            None => decoded(&uri),
        })
    }
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
    percent_decode_str(uri).decode_utf8_lossy().into_owned()
}
