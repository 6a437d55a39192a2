//! Hints about commands that cannot go on: one that waits for keys or an answer, and one that waits for a lock.

use std::time::Duration;

use crate::{jail::Standstill, operation::Operation};

/// A command is blocked if two looks in a row find the same reason: many wait for a lock for a moment.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// Waits until the operation is blocked; for ever if it never is.
pub(super) async fn begun(operation: &Operation) {
    let mut before = None;
    loop {
        tokio::time::sleep(LOOK_INTERVAL).await;
        let reason = hint(operation).await;
        if reason.is_some() && reason == before {
            return;
        }
        before = reason;
    }
}

/// A hint about a blocked operation.
pub(super) async fn hint(operation: &Operation) -> Option<String> {
    if operation.keeps_running() {
        return None;
    }
    if let Some(reason) = operation.standstill().await {
        return Some(told(&reason));
    }
    let question = operation
        .snapshot()
        .newest_line
        .filter(|line| is_question(line))?;
    Some(format!(
        "it asks `{}`, and no answer can be given: cancel it, and pass `stdin` or a flag that answers",
        question.trim()
    ))
}

fn told(reason: &Standstill) -> String {
    match reason {
        Standstill::Keys { program } => format!(
            "`{program}` works on a terminal, and there is none here: cancel it, and use a command that needs no keys"
        ),
        Standstill::Lock { file, holder } => {
            let file = file
                .as_ref()
                .map_or_else(String::new, |file| format!(" on {}", file.display()));
            let holder = holder.as_ref().map_or_else(String::new, |(pid, name)| {
                format!(" that process {pid} (`{name}`) has")
            });
            format!("it waits for a lock{file}{holder}: await waits on, cancel gives up")
        }
    }
}

/// A line that asks for something.
fn is_question(line: &str) -> bool {
    const ASKED_FOR: [&str; 4] = ["login", "passphrase", "password", "username"];
    const CHOICES: [&str; 3] = ["[y/n]", "(y/n)", "(yes/no)"];
    let lower = line.trim_end().to_lowercase();
    let asks = lower.ends_with(':') && ASKED_FOR.iter().any(|word| lower.contains(word));
    let choice = lower.trim_end_matches([':', '?', ' ']);
    asks || CHOICES.iter().any(|words| choice.ends_with(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_told_from_other_lines() {
        for line in [
            "Password: ",
            "Enter passphrase for key '/x':",
            "Continue? [y/N] ",
            "Are you sure (yes/no)?",
        ] {
            assert!(is_question(line), "{line}");
        }
        for line in [
            "compiling login",
            "usage: passwd NAME",
            "password changed",
            "a:",
            "",
        ] {
            assert!(!is_question(line), "{line}");
        }
    }
}
