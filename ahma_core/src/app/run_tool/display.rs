//! The part of a run that people see on stderr: a progress bar on a terminal, a few plain lines elsewhere.
//!
//! The bar is the last line of the terminal and is cleared before anything else is written. No bar is drawn while the
//! command's output on the same terminal stops in the middle of a line.

use std::{
    io::{IsTerminal as _, Write as _},
    time::Duration,
};

use ahma_common::words::counted;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::{
    observe::{Finding, Severity},
    operation::Snapshot,
};

/// Redraws a second: more cannot be read, fewer look stuck.
const REDRAW_HZ: u8 = 10;

/// A command that ends sooner gets no bar.
const BAR_DELAY: Duration = Duration::from_millis(300);

const WITH_PERCENT: &str = "{prefix} [{bar:20}] {wide_msg}";
const WITHOUT_PERCENT: &str = "{prefix} {wide_msg}";

#[derive(Debug)]
pub(super) struct Display {
    colour: bool,
    progress: ProgressOutput,
    /// The output has stopped within a line.
    mid_line: bool,
}

#[derive(Debug)]
enum ProgressOutput {
    Bar(Bar),
    /// The last line written: tens of percent, phase.
    Lines(Option<u32>, Option<String>),
}

#[derive(Debug)]
struct Bar {
    /// Only a group of bars can be cleared without being finished.
    group: MultiProgress,
    bar: ProgressBar,
    /// stdout is a terminal too, so output and bar share it.
    shares_terminal: bool,
}

impl Display {
    /// Uses colour only if `colour` is set and stderr is a capable terminal.
    pub(super) fn open(tool: &str, colour: bool) -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let terminal = std::io::stderr().is_terminal() && !dumb;
        let progress = if terminal {
            let group = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(REDRAW_HZ));
            ProgressOutput::Bar(Bar {
                bar: group.add(ProgressBar::new(100).with_prefix(tool.to_owned())),
                group,
                shares_terminal: std::io::stdout().is_terminal(),
            })
        } else {
            ProgressOutput::Lines(None, None)
        };
        Self {
            colour: colour && terminal,
            progress,
            mid_line: false,
        }
    }

    pub(super) fn is_terminal(&self) -> bool {
        matches!(self.progress, ProgressOutput::Bar(_))
    }

    /// To be called before `bytes` of the command's output are written.
    pub(super) fn before_output(&mut self, bytes: &[u8]) {
        self.clear();
        self.mid_line = bytes.last().is_some_and(|&last| last != b'\n');
    }

    pub(super) fn progress(&mut self, now: &Snapshot) {
        match &mut self.progress {
            ProgressOutput::Bar(bar) => {
                if now.elapsed >= BAR_DELAY && !(bar.shares_terminal && self.mid_line) {
                    bar.draw(now);
                }
            }
            // Both streams may lead to one place, where this would cut a line in two.
            ProgressOutput::Lines(..) if self.mid_line => {}
            ProgressOutput::Lines(tens, phase) => {
                let now_tens = now.progress.percent.map(|percent| (percent / 10.0) as u32);
                let has_new_phase = now.progress.phase.is_some() && now.progress.phase != *phase;
                if now_tens > *tens || has_new_phase {
                    (*tens, *phase) = (now_tens.max(*tens), now.progress.phase.clone());
                    write(&format!("progress: {}\n", state_line(now)));
                }
            }
        }
    }

    pub(super) fn finding(&mut self, finding: &Finding) {
        let (on, off) = match (self.colour, finding.severity) {
            (false, _) | (true, Severity::Info) => ("", ""),
            (true, Severity::Critical | Severity::High) => ("\x1b[31m", "\x1b[0m"),
            (true, Severity::Medium | Severity::Low) => ("\x1b[33m", "\x1b[0m"),
        };
        let part = |before: &str, text: &Option<String>| {
            text.as_ref()
                .map(|text| format!("{before}{text}"))
                .unwrap_or_default()
        };
        self.line(&format!(
            "finding: {on}{}{off}: {}{}{}{}",
            finding.severity.as_str(),
            finding.title,
            part(" ", &finding.cve),
            part(" at ", &finding.location),
            part("; ", &finding.remediation),
        ));
    }

    /// Writes a whole line, below an unfinished one of the command.
    pub(super) fn line(&mut self, text: &str) {
        self.clear();
        if let ProgressOutput::Bar(bar) = &self.progress
            && bar.shares_terminal
            && std::mem::take(&mut self.mid_line)
        {
            write("\n");
        }
        write(&format!("{text}\n"));
    }

    fn clear(&self) {
        if let ProgressOutput::Bar(bar) = &self.progress {
            let _ = bar.group.clear();
        }
    }
}

impl Bar {
    fn draw(&self, now: &Snapshot) {
        let template = match now.progress.percent {
            Some(_) => WITH_PERCENT,
            None => WITHOUT_PERCENT,
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style.progress_chars("#."));
        }
        self.bar
            .set_position(now.progress.percent.unwrap_or_default() as u64);
        // It quotes the command's output, which must not move the cursor.
        self.bar
            .set_message(state_line(now).replace(char::is_control, " "));
    }
}

/// `42%, compiling, step 2 of 3: cargo test, 12 s, 3 findings`, as far as it is known.
fn state_line(now: &Snapshot) -> String {
    let mut parts = Vec::new();
    parts.extend(now.progress.percent.map(|percent| format!("{percent:.0}%")));
    parts.extend(now.progress.phase.clone());
    if let Some(step) = &now.step {
        parts.push(format!("step {} of {}: {}", step.number, step.of, step.label));
    }
    parts.push(format!("{} s", now.elapsed.as_secs()));
    let findings = now.finding_counts.total();
    if findings > 0 {
        parts.push(counted(findings, "finding"));
    }
    parts.join(", ")
}

/// Ignores errors: stderr may be closed, and nothing depends on it.
fn write(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}
