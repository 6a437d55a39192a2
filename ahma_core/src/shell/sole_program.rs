//! Texts that are one plain command: a program and its words, with nothing for a shell to do.
//!
//! An allow-list, because a mistake here would change what a text means. What is not on it is left to the shell as it is.

/// The program of a text that is nothing but a program's name and words without a meaning to shells.
pub(super) fn of(text: &str) -> Option<&str> {
    let text = text.trim_matches(' ');
    let (program, words) = text.split_once(' ').unwrap_or((text, ""));
    let is_name = program.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        && program
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_.+-".contains(&byte));
    let are_plain = words
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b" _./,:@%+=-".contains(&byte));
    (is_name && are_plain && BUILT_IN.binary_search(&program).is_err()).then_some(program)
}

/// Commands and words of bash and dash that are no programs, or not those of that name. In order.
#[rustfmt::skip]
const BUILT_IN: [&str; 76] = [
    "alias", "bg", "bind", "break", "builtin", "caller", "case", "cd", "chdir", "command", "compgen", "complete",
    "compopt", "continue", "coproc", "declare", "dirs", "disown", "do", "done", "echo", "elif", "else", "enable",
    "esac", "eval", "exec", "exit", "export", "false", "fc", "fg", "fi", "for", "function", "getopts", "hash",
    "help", "history", "if", "in", "jobs", "kill", "let", "local", "logout", "mapfile", "popd", "printf", "pushd",
    "pwd", "read", "readarray", "readonly", "return", "select", "set", "shift", "shopt", "source", "suspend",
    "test", "then", "time", "times", "trap", "true", "type", "typeset", "ulimit", "umask", "unalias", "unset",
    "until", "wait", "while",
];

#[cfg(test)]
#[path = "sole_program_tests.rs"]
mod tests;
