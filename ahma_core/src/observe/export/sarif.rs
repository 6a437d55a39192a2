//! Findings as a SARIF 2.1.0 log.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{
    super::{Finding, FindingPage, Severity},
    LEFT_OUT,
};

const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json";

/// A CVSS score, by a convention that readers follow: SARIF itself has only three levels.
const SCORE: &str = "security-severity";

/// Ends of host names that look like the extension of a file.
const HOST_ENDINGS: [&str; 6] = [".com", ".net", ".org", ".io", ".local", ".internal"];

/// A log with one run of `tool`. Its properties say how many findings it does not hold.
pub fn sarif(page: &FindingPage, tool: &str) -> Value {
    let findings = &page.findings;
    let mut rules: Vec<Value> = Vec::new();
    let mut index_of: BTreeMap<&str, usize> = BTreeMap::new();
    let mut results = Vec::with_capacity(findings.len());
    for finding in findings {
        let index = *index_of.entry(&finding.id).or_insert_with(|| {
            rules.push(rule(finding));
            rules.len() - 1
        });
        results.push(result(finding, index));
    }
    let mut run = json!({ "tool": { "driver": { "name": tool, "rules": rules } }, "results": results });
    if page.left_out() > 0 {
        run["properties"] = json!({ LEFT_OUT: page.left_out() });
    }
    json!({ "$schema": SCHEMA, "version": "2.1.0", "runs": [run] })
}

fn rule(finding: &Finding) -> Value {
    let mut rule = json!({ "id": finding.id, "shortDescription": { "text": finding.title } });
    let tags: Vec<&str> = [&finding.kind, &finding.cwe, &finding.cve]
        .into_iter()
        .flatten()
        .map(String::as_str)
        .collect();
    // Readers that look for a score here want none of zero.
    if finding.severity > Severity::Info {
        rule["properties"][SCORE] = json!(score(finding.severity));
    }
    if !tags.is_empty() {
        rule["properties"]["tags"] = json!(unique(tags));
    }
    if let Some(remediation) = &finding.remediation {
        rule["help"] = json!({ "text": remediation });
    }
    rule
}

/// In the middle of what CVSS 3.1 rates like this.
fn score(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "9.5",
        Severity::High => "8.0",
        Severity::Medium => "5.5",
        Severity::Low => "2.0",
        Severity::Info => "0.0",
    }
}

/// The standard wants the tags of a rule to differ.
fn unique(mut tags: Vec<&str>) -> Vec<&str> {
    let mut seen = std::collections::BTreeSet::new();
    tags.retain(|tag| seen.insert(*tag));
    tags
}

fn result(finding: &Finding, rule_index: usize) -> Value {
    let level = match finding.severity {
        Severity::Critical | Severity::High => "error",
        Severity::Medium => "warning",
        Severity::Low | Severity::Info => "note",
    };
    let text = match &finding.description {
        Some(description) if *description != finding.title => format!("{}: {description}", finding.title),
        _ => finding.title.clone(),
    };
    let mut properties = Map::from_iter([
        ("severity".to_owned(), json!(finding.severity)),
        (SCORE.to_owned(), json!(score(finding.severity))),
        ("title".to_owned(), json!(finding.title)),
    ]);
    let optional = [
        ("kind", &finding.kind),
        ("cve", &finding.cve),
        ("cwe", &finding.cwe),
        ("remediation", &finding.remediation),
    ];
    properties.extend(
        optional
            .into_iter()
            .filter_map(|(name, text)| Some((name.to_owned(), json!(text.as_ref()?)))),
    );
    let mut result = json!({
        "ruleId": finding.id,
        "ruleIndex": rule_index,
        "level": level,
        "message": { "text": text },
        "properties": properties,
    });
    if let Some(location) = &finding.location {
        result["locations"] = json!([sarif_location(location)]);
    }
    result
}

/// A place in a file where the text looks like one, else a name.
fn sarif_location(location: &str) -> Value {
    let (path, line, column) = split_location(location);
    let looks_like_file = match line {
        Some(_) => stands_before_a_line(path),
        None => path.contains('/') && has_extension(path) && !path.contains("::"),
    };
    if !looks_like_file {
        return json!({ "logicalLocations": [{ "fullyQualifiedName": location }] });
    }
    let mut place = json!({ "artifactLocation": { "uri": uri(path) } });
    if let Some(line) = line {
        place["region"] = json!({ "startLine": line });
        if let Some(column) = column {
            place["region"]["startColumn"] = json!(column);
        }
    }
    json!({ "physicalLocation": place })
}

/// Whether a number behind this text is a line and not the port of a host.
fn stands_before_a_line(text: &str) -> bool {
    let behind_scheme = text.split_once("://").map_or(text, |(_, rest)| rest);
    if behind_scheme.contains(['/', '\\']) {
        return true;
    }
    // Files like `Makefile` have no extension, and hosts no capitals.
    let is_name = has_extension(text) || text.contains(char::is_uppercase);
    is_name && !text.contains([':', '[']) && !HOST_ENDINGS.iter().any(|ending| text.ends_with(ending))
}

/// Takes `path:line:column` apart. SARIF counts both from 1.
fn split_location(location: &str) -> (&str, Option<u32>, Option<u32>) {
    let number_behind = |text: &'_ str| -> Option<(usize, u32)> {
        let (before, number) = text.rsplit_once(':')?;
        let number: u32 = number.parse().ok().filter(|number| *number > 0)?;
        (!before.is_empty() && !before.ends_with(':')).then_some((before.len(), number))
    };
    let Some((end, last)) = number_behind(location) else {
        return (location, None, None);
    };
    match number_behind(&location[..end]) {
        Some((path_end, line)) => (&location[..path_end], Some(line), Some(last)),
        None => (&location[..end], Some(last), None),
    }
}

fn has_extension(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    extension.starts_with(|c: char| c.is_ascii_alphabetic())
        && extension.chars().all(|c| c.is_ascii_alphanumeric())
}

/// A path as a relative reference, or a URI as it is.
fn uri(path: &str) -> String {
    if path.contains("://") {
        return path.to_owned();
    }
    let mut encoded = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(byte.into())
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}
