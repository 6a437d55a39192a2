//! Findings as JUnit XML, for programs that show test reports.
//!
//! `quick-junit` would save some thirty lines and bring chrono and a second copy of quick-xml.

use quick_xml::escape::escape;

use super::{
    super::{Finding, FindingPage, Severity},
    Invocation, LEFT_OUT,
};

/// One suite named after the tool, one case per finding. All but info are failures. A property says how many findings
/// it does not hold; a run that did not succeed is an error, so that it never passes for a clean one.
pub fn junit(page: &FindingPage, tool: &str, invocation: &Invocation) -> String {
    let findings = &page.findings;
    let failures = findings
        .iter()
        .filter(|finding| finding.severity > Severity::Info)
        .count();
    let failure = invocation.failure();
    let errors = usize::from(failure.is_some());
    let counts = format!(
        "tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"0\"",
        findings.len() + errors
    );
    let tool = attribute(tool);
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let timestamp = invocation
        .started_at
        .as_deref()
        .map_or_else(String::new, |time| format!(" timestamp=\"{}\"", attribute(time)));
    xml.push_str(&format!(
        "<testsuites name=\"{tool}\" {counts}>\n  <testsuite name=\"{tool}\" {counts}{timestamp}>\n"
    ));
    push_properties(&mut xml, page, invocation);
    if let Some(failure) = failure {
        let (status, message) = (attribute(&invocation.status), attribute(&failure));
        xml.push_str(&format!(
            "    <testcase classname=\"{tool}\" name=\"{tool}\"><error type=\"{status}\" message=\"{message}\"/></testcase>\n"
        ));
    }
    for finding in findings {
        push_case(&mut xml, finding, &tool);
    }
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

fn push_properties(xml: &mut String, page: &FindingPage, run: &Invocation) {
    let left_out = Some(page.left_out()).filter(|left_out| *left_out > 0);
    let properties = [
        ("command", Some(run.command.clone())),
        ("status", Some(run.status.clone())),
        ("exit_code", run.exit_code.map(|code| code.to_string())),
        ("signal", run.signal.map(|signal| signal.to_string())),
        ("reason", run.reason.clone()),
        ("ended_at", run.ended_at.clone()),
        ("percent", run.percent.map(|percent| percent.to_string())),
        ("phase", run.phase.clone()),
        (LEFT_OUT, left_out.map(|left_out| left_out.to_string())),
    ];
    let lines = properties.into_iter().filter_map(|(name, value)| {
        let value = attribute(&value.filter(|value| !value.is_empty())?);
        Some(format!("      <property name=\"{name}\" value=\"{value}\"/>\n"))
    });
    let lines: String = lines.collect();
    if !lines.is_empty() {
        xml.push_str(&format!("    <properties>\n{lines}    </properties>\n"));
    }
}

fn push_case(xml: &mut String, finding: &Finding, tool: &str) {
    let class = finding.kind.as_deref().map_or_else(|| tool.to_owned(), attribute);
    let id = attribute(&finding.id);
    let body = body(finding);
    let element = match finding.severity {
        Severity::Info => format!("<system-out>{body}</system-out>"),
        severity => {
            let (severity, title) = (severity.as_str(), attribute(&finding.title));
            format!("<failure type=\"{severity}\" message=\"{title}\">{body}</failure>")
        }
    };
    xml.push_str(&format!(
        "    <testcase classname=\"{class}\" name=\"{id}\">{element}</testcase>\n"
    ));
}

fn body(finding: &Finding) -> String {
    let lines = [
        ("", Some(&finding.title)),
        ("location: ", finding.location.as_ref()),
        ("severity: ", Some(&finding.severity.as_str().to_owned())),
        ("cve: ", finding.cve.as_ref()),
        ("cwe: ", finding.cwe.as_ref()),
        ("", finding.description.as_ref()),
        ("remediation: ", finding.remediation.as_ref()),
    ];
    let present = lines
        .into_iter()
        .filter_map(|(label, text)| Some(format!("{label}{}", text?)));
    escape(allowed(&present.collect::<Vec<_>>().join("\n"))).into_owned()
}

/// Escaped for an attribute; line ends would be read as spaces, so they become references.
fn attribute(text: &str) -> String {
    escape(allowed(text)).replace('\n', "&#10;").replace('\t', "&#9;")
}

/// Without the characters that XML 1.0 cannot hold, not even as references.
fn allowed(text: &str) -> String {
    let is_allowed = |c: &char| matches!(c, '\t' | '\n' | ' '..='\u{FFFD}' | '\u{10000}'..) && *c != '\u{7f}';
    text.chars().filter(is_allowed).collect()
}
