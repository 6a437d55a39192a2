//! Tries the stream rules of a tool file on a recorded output.

use std::{
    fs,
    io::{self, Read as _},
    path::Path,
    sync::Arc,
};

use ahma_common::words::{counted, shorten};
use ahma_core::{
    mtdf::{Checked, Leaf, LeafAction},
    observe::{Finding, Progress, ReplayedLine, StreamEvent, StreamRules, replay, unmatched},
};
use anyhow::{Context, Result, bail};

use crate::args::Format;

/// A tool of the file, and its rules.
type RuledLeaf<'a> = (&'a str, &'a Arc<StreamRules>);

/// Result of the rules on the recording, line by line. `tool` chooses one where the file has several.
pub(crate) fn try_sample(
    checked: &Checked,
    recording: &Path,
    tool: Option<&str>,
    format: Format,
) -> Result<String> {
    let (_, rules) = choose(checked, tool)?;
    let bytes = read(recording).with_context(|| format!("cannot read {}", recording.display()))?;
    let lines = replay(rules, &String::from_utf8_lossy(&bytes));
    Ok(match format {
        Format::Text => text(&lines) + &unmatched_rules(rules, &String::from_utf8_lossy(&bytes)),
        Format::Json => serde_json::to_string_pretty(&lines)? + "\n",
    })
}

/// `-` is what comes on stdin.
fn read(recording: &Path) -> io::Result<Vec<u8>> {
    if recording != Path::new("-") {
        return fs::read(recording);
    }
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn choose<'a>(checked: &'a Checked, tool: Option<&str>) -> Result<RuledLeaf<'a>> {
    let leaves = checked.tool.iter().flat_map(|tool| &tool.leaves);
    let ruled: Vec<RuledLeaf<'a>> = leaves
        .filter_map(|leaf| Some((leaf.name.as_str(), rules_of(leaf)?)))
        .collect();
    let names = || ruled.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    match (tool, ruled.as_slice()) {
        (_, []) => bail!("no tool of this file has a `stream` block"),
        (None, [only]) => Ok(*only),
        (None, several) if several.iter().all(|(_, rules)| Arc::ptr_eq(rules, several[0].1)) => {
            Ok(several[0])
        }
        (None, _) => bail!(
            "several tools of this file have a `stream` block; choose one with --tool: {}",
            names()
        ),
        (Some(tool), _) => match ruled.iter().find(|(name, _)| *name == tool) {
            Some(found) => Ok(*found),
            None => bail!(
                "no tool `{tool}` with a `stream` block in this file; it has {}",
                names()
            ),
        },
    }
}

fn rules_of(leaf: &Leaf) -> Option<&Arc<StreamRules>> {
    match &leaf.action {
        LeafAction::Command(command) => command.stream.as_ref(),
        LeafAction::Sequence(_) | LeafAction::Script | LeafAction::ReadOnlyScript | LeafAction::File(_) => {
            None
        }
    }
}

/// The rules that made nothing of the recording, and why.
fn unmatched_rules(rules: &StreamRules, recording: &str) -> String {
    let mut text = String::new();
    for rule in unmatched(rules, recording) {
        text.push_str(&format!(
            "rule {} matched nothing: {}\n",
            rule.index,
            printable(&rule.reason)
        ));
    }
    text
}

/// Every line of the recording, and below it what it gives.
fn text(lines: &[ReplayedLine]) -> String {
    let width = lines.last().map_or(1, |line| line.line_no.to_string().len());
    let mut text = String::new();
    let (mut progress, mut findings) = (0, 0);
    for line in lines {
        text.push_str(&format!("{:>width$} | {}\n", line.line_no, printable(&line.text)));
        for event in &line.events {
            match event {
                StreamEvent::Progress(_) => progress += 1,
                StreamEvent::Finding(_) => findings += 1,
                StreamEvent::FindingsOmitted(omitted) => findings += omitted.total(),
                StreamEvent::Notice { .. } => {}
            }
            text.push_str(&format!("{:>width$} => {}\n", "", described(event)));
        }
    }
    text + &format!(
        "{}, {}, {}\n",
        counted(lines.len(), "line"),
        counted(progress, "progress event"),
        counted(findings, "finding")
    )
}

fn described(event: &StreamEvent) -> String {
    match event {
        StreamEvent::Progress(progress) => format!("progress: {}", progress_parts(progress).join(", ")),
        StreamEvent::Finding(finding) => format!("finding: {}", finding_parts(finding).join(", ")),
        StreamEvent::Notice { text } => format!("notice: {text}"),
        StreamEvent::FindingsOmitted(omitted) => {
            format!(
                "{} more findings, past the limit and only counted",
                omitted.total()
            )
        }
    }
}

fn progress_parts(progress: &Progress) -> Vec<String> {
    let count = match (progress.current, progress.total) {
        (Some(current), Some(total)) => Some(format!("{current} of {total}")),
        (Some(current), None) => Some(format!("{current} done")),
        (None, Some(total)) => Some(format!("{total} in all")),
        (None, None) => None,
    };
    [
        progress.percent.map(|percent| format!("{percent}%")),
        progress.phase.as_ref().map(|phase| format!("phase `{phase}`")),
        count,
        progress.eta_seconds.map(|seconds| format!("{seconds} s left")),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn finding_parts(finding: &Finding) -> Vec<String> {
    let named =
        |name: &str, text: &Option<String>| text.as_ref().map(|text| format!("{name} `{}`", printable(text)));
    let mut parts = vec![
        finding.severity.as_str().to_owned(),
        format!("id `{}`", finding.id),
        format!("title `{}`", finding.title),
    ];
    let optional = [
        named("kind", &finding.kind),
        named("cve", &finding.cve),
        named("cwe", &finding.cwe),
        named("location", &finding.location),
        named("description", &finding.description),
        named("remediation", &finding.remediation),
    ];
    parts.extend(optional.into_iter().flatten());
    parts
}

/// A recording may hold anything; a terminal must not obey it, and a line must stay one.
fn printable(text: &str) -> String {
    const MAX_CHARS: usize = 200;
    shorten(text.to_owned(), MAX_CHARS)
        .chars()
        .flat_map(escaped)
        .collect()
}

fn escaped(letter: char) -> Vec<char> {
    if letter.is_control() {
        letter.escape_default().collect()
    } else {
        vec![letter]
    }
}
