//! Captures of real tools, printed again with their original timing by a command of the real server.

use std::{collections::BTreeMap, fmt::Write as _, fs};

use ahma_core::observe::{self, StdioNeed, StreamEvent};
use serde_json::{Value, json};
use test_support::{Era, Workspace};

use crate::{
    session::options,
    streams::{SHIPPED, block, compile, fixture, shipped},
};

/// A capture that takes longer is not waited for.
const MAX_SECONDS: f64 = 15.0;

/// One write of the captured program.
pub(crate) struct Piece {
    pub(crate) at: f64,
    to_stderr: bool,
    bytes: String,
}

pub(crate) fn pieces(capture: &str, has_json: bool) -> Vec<Piece> {
    let piece = |line: &str| {
        let (at, rest) = line.strip_prefix('+')?.split_once(' ')?;
        let (stream, text) = rest.split_once("| ").or_else(|| rest.split_once('|'))?;
        let to_stderr = stream == "err";
        let (body, end) = text
            .strip_suffix("\\r\\n")
            .map(|body| (body, "\r\n"))
            .or_else(|| Some((text.strip_suffix("\\n")?, "\n")))
            .unwrap_or((text, ""));
        // Inside JSON an escape belongs to the text.
        let body = if has_json && !to_stderr {
            body.to_owned()
        } else {
            body.replace("\\r", "\r").replace("\\x1b", "\x1b")
        };
        Some(Piece {
            at: at.parse().ok()?,
            to_stderr,
            bytes: body + end,
        })
    };
    capture.lines().filter_map(piece).collect()
}

/// A script that prints the pieces when they were printed.
pub(crate) fn script(directory: &str, pieces: &[Piece], workspace: &Workspace) -> String {
    let home = workspace.scope().join(directory);
    fs::create_dir_all(&home).unwrap();
    let mut script = String::new();
    let mut now = 0.0;
    for (number, piece) in pieces.iter().enumerate() {
        fs::write(home.join(number.to_string()), &piece.bytes).unwrap();
        if piece.at - now >= 0.01 {
            writeln!(script, "sleep {:.2}", piece.at - now).unwrap();
        }
        now = piece.at;
        let stream = if piece.to_stderr { " >&2" } else { "" };
        writeln!(script, "cat {directory}/{number}{stream}").unwrap();
    }
    script
}

#[test]
fn captures_give_their_progress_and_findings_with_their_own_timing() {
    let workspace = Workspace::new();
    let mut expected = BTreeMap::new();
    for (number, (file, subcommands, sample)) in SHIPPED.into_iter().enumerate() {
        let capture = fixture(sample);
        let mut stream = shipped(file, subcommands);
        // They are for the real program.
        let fields = stream.as_object_mut().unwrap();
        fields.retain(|name, _| !matches!(name.as_str(), "append_args" | "env"));
        let rules = compile(&block(stream.clone()));
        let has_json = sample.contains("json") || sample.contains("sarif");
        let pieces = pieces(&capture, has_json);
        if pieces.last().is_none_or(|last| last.at > MAX_SECONDS) || rules.stdio() == StdioNeed::Pty {
            continue;
        }
        let name = format!("replay{number}");
        let script = script(&name, &pieces, &workspace);
        fs::write(workspace.scope().join(format!("{name}.sh")), script).unwrap();
        workspace.write_tool(
            &format!("{name}.json"),
            &json!({ "name": name, "description": "Prints a capture.", "command": "sh", "stream": stream,
                     "positional_args": [{ "name": "script", "type": "string", "required": true }] }),
        );
        let events: Vec<StreamEvent> = observe::replay(&rules, &capture)
            .into_iter()
            .flat_map(|line| line.events)
            .collect();
        expected.insert(name, (sample, events, pieces.last().unwrap().at));
    }
    assert!(expected.len() >= 15, "{}", expected.len());

    let mut server = options(&workspace).open(Era::Legacy);
    let calls: Vec<(i64, String)> = expected
        .keys()
        .map(|name| {
            let params = json!({
                "name": name,
                "arguments": {"script": format!("{name}.sh"), "execution_mode": "synchronous"},
                "_meta": {"progressToken": name},
            });
            (server.request("tools/call", params), name.clone())
        })
        .collect();
    let answers: BTreeMap<String, Value> = calls
        .into_iter()
        .map(|(id, name)| (name, server.answer(id)["result"]["structuredContent"].clone()))
        .collect();
    let told = server.others(std::time::Duration::ZERO);

    let mut streamed_findings = 0;
    for (name, (sample, events, seconds)) in &expected {
        let answer = &answers[name];
        let findings: Vec<Value> = events
            .iter()
            .filter_map(|event| match event {
                StreamEvent::Finding(finding) => serde_json::to_value(finding).ok(),
                _ => None,
            })
            .collect();
        let shown = answer["findings"].as_array().cloned().unwrap_or_default();
        let mut worst_first = findings.clone();
        let rank = ["critical", "high", "medium", "low", "info"];
        worst_first.sort_by_key(|finding| rank.iter().position(|word| finding["severity"] == *word));
        assert_eq!(shown, worst_first[..shown.len()], "{sample}");
        assert_eq!(
            shown.len() as u64 + answer["findings_left_out"].as_u64().unwrap_or(0),
            findings.len() as u64,
            "{sample}"
        );
        assert_eq!(
            answer["finding_counts"].as_object().map_or(0, |counts| {
                counts.values().filter_map(Value::as_u64).sum::<u64>()
            }),
            findings.len() as u64,
            "{sample}"
        );

        let heard: Vec<&Value> = told
            .iter()
            .map(|message| &message["params"])
            .filter(|params| params["progressToken"] == name.as_str())
            .collect();
        let values: Vec<f64> = heard
            .iter()
            .map(|params| params["progress"].as_f64().unwrap())
            .collect();
        assert!(values.is_sorted_by(|a, b| a < b), "{sample}: {values:?}");
        let streamed: Vec<Value> = heard
            .iter()
            .flat_map(|params| {
                params["_meta"]["ahma/findings"]
                    .as_array()
                    .cloned()
                    .unwrap_or_default()
            })
            .map(|finding| finding["id"].clone())
            .collect();
        let ids: Vec<&Value> = findings.iter().map(|finding| &finding["id"]).collect();
        assert_eq!(streamed.iter().collect::<Vec<_>>(), ids, "{sample}");
        streamed_findings += streamed.len();
        let percents: Vec<f64> = events
            .iter()
            .filter_map(|event| match event {
                StreamEvent::Progress(progress) => progress.percent,
                _ => None,
            })
            .collect();
        if *seconds > 1.5 && percents.iter().filter(|percent| **percent > 0.0).count() > 3 {
            let known: Vec<f64> = heard
                .iter()
                .filter(|params| params["total"] == 100.0)
                .map(|params| params["progress"].as_f64().unwrap())
                .collect();
            assert!(!known.is_empty(), "{sample}: no percent was told; {heard:?}");
            let most = percents.iter().copied().fold(0.0, f64::max);
            assert!(
                known.iter().all(|value| *value <= most + 1.0),
                "{sample}: {known:?}"
            );
        }
    }
    assert!(streamed_findings > 20, "{streamed_findings}");
}
