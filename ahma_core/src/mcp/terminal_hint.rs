//! A word about commands that wait for keys although there is no terminal.

/// Programs that do nothing useful without a terminal, and wait for ever.
const INTERACTIVE: [&str; 12] = [
    "emacs", "htop", "nano", "nvim", "pico", "screen", "tmux", "top", "vi", "view", "vim", "watch",
];

/// A hint if a command line that goes on for long begins such a program.
pub(super) fn of(command: &str) -> Option<String> {
    let program = command
        .split([';', '|', '&', '\n'])
        .filter_map(|part| part.split_whitespace().find(|word| !word.contains('=')))
        .map(|word| word.rsplit('/').next().unwrap_or(word))
        .find(|program| INTERACTIVE.contains(program))?;
    Some(format!(
        "`{program}` works on a terminal, and there is none here; cancel it and use a command that needs no keys"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_for_a_terminal_are_recognised_where_a_command_begins() {
        for command in ["vim a.txt", "cd x && EDITOR=y /usr/bin/vim a", "echo a | nano"] {
            assert!(of(command).is_some(), "{command}");
        }
        for command in ["cargo test vim", "echo vi", "grep -r top .", ""] {
            assert_eq!(of(command), None, "{command}");
        }
    }
}
