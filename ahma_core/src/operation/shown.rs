//! The part of an operation's output that its result shows, where the rules of its tools say what matters.

use std::sync::Arc;

use ahma_common::words::counted;

use crate::observe::{Digest, Show, StreamRules, displayed};

use super::{EndState, Excerpt, OperationId};

/// Room for the lines that explain a failure, alone and beside findings.
const EXPLANATION_BYTES: usize = 1_500;
const EXPLANATION_BESIDE_FINDINGS_BYTES: usize = 600;

/// Unknown lines of a success are shown if they take no more than this.
const FEW_BYTES: usize = 200;

/// The parts of an operation's output that a result shows.
#[derive(Debug, Default)]
pub(super) struct Shown {
    commands: Vec<ShownCommand>,
}

#[derive(Debug)]
struct ShownCommand {
    rules: Option<Arc<StreamRules>>,
    digest: Option<Digest>,
}

impl Shown {
    /// Adds a command that has ended.
    pub(super) fn add(&mut self, rules: Option<&Arc<StreamRules>>, digest: Option<Digest>) {
        self.commands.push(ShownCommand {
            rules: rules.cloned(),
            digest,
        });
    }

    /// Adds the commands of another.
    pub(super) fn extend(&mut self, other: Self) {
        self.commands.extend(other.commands);
    }

    /// The choice for the whole. All output is shown if one of the commands asks for it.
    pub(super) fn show(&self) -> Show {
        let shows = self.commands.iter().map(|command| match &command.rules {
            Some(rules) => rules.show(),
            None => Show::Output,
        });
        shows
            .min_by_key(|show| match show {
                Show::Output => 0,
                Show::Findings => 1,
                Show::Summary => 2,
            })
            .unwrap_or_default()
    }

    /// The output as the result shows it.
    pub(super) fn excerpt(
        &self,
        whole: Excerpt,
        state: EndState,
        has_findings: bool,
        id: &OperationId,
    ) -> Excerpt {
        let text = match self.show() {
            Show::Output => return self.without_noise(whole),
            Show::Findings | Show::Summary if state == EndState::Completed => {
                self.of_success(&whole, has_findings)
            }
            Show::Findings | Show::Summary => self.of_failure(has_findings),
        };
        let shown_lines = text.lines().count() as u64;
        let mut text = text;
        if state != EndState::Completed && whole.total_lines > shown_lines {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&format!(
                "[{} in all: output {{\"operation_id\": \"{id}\"}}]",
                counted(whole.total_lines, "line")
            ));
        }
        Excerpt {
            text,
            left_out: None,
            ..whole
        }
    }

    fn of_success(&self, whole: &Excerpt, has_findings: bool) -> String {
        let summary = self.summary();
        if !summary.is_empty() || has_findings {
            return summary;
        }
        let explanation = self.explanation(FEW_BYTES);
        if explanation.len() <= FEW_BYTES && whole.total_bytes > 0 {
            return explanation;
        }
        String::new()
    }

    fn of_failure(&self, has_findings: bool) -> String {
        let room = if has_findings {
            EXPLANATION_BESIDE_FINDINGS_BYTES
        } else {
            EXPLANATION_BYTES
        };
        let parts = [self.explanation(room), self.summary()];
        let parts: Vec<&str> = parts
            .iter()
            .map(String::as_str)
            .filter(|part| !part.is_empty())
            .collect();
        parts.join("\n")
    }

    fn summary(&self) -> String {
        let digests = self.commands.iter().filter_map(|command| command.digest.as_ref());
        digests.flat_map(Digest::summary).collect::<Vec<_>>().join("\n")
    }

    /// Of the last command: the others have completed.
    fn explanation(&self, max_bytes: usize) -> String {
        let last = self.commands.last().and_then(|command| command.digest.as_ref());
        last.map_or_else(String::new, |digest| digest.explanation(max_bytes))
    }

    fn without_noise(&self, mut whole: Excerpt) -> Excerpt {
        let rules: Vec<&Arc<StreamRules>> = (self.commands.iter())
            .filter_map(|command| command.rules.as_ref())
            .filter(|rules| rules.has_noise())
            .collect();
        if !rules.is_empty() {
            let text = displayed(&whole.text);
            let lines = text.split_inclusive('\n');
            let kept = lines.filter(|line| !rules.iter().any(|rules| rules.is_noise(line.trim_end())));
            whole.text = kept.collect();
        }
        whole
    }
}

#[cfg(test)]
#[path = "shown_tests.rs"]
mod tests;
