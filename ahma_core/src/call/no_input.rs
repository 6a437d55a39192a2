//! Hint about programs that read standard input although the call gave none: they end at once without a message.

use super::plan::{Program, Work};

/// Programs that read standard input if they are given no more operands than this.
const READERS: [(usize, &str); 4] = [
    (
        0,
        "bash bc cat cut dash head less md5sum node patch perl python python3 ruby sh sha256sum sort tail uniq wc",
    ),
    (1, "awk egrep grep jq mysql psql sed sqlite3"),
    (2, "tr"),
    (usize::MAX, "read tee xargs"),
];

/// Options with which they read a program or files instead, or only say something about themselves.
const OTHER_SOURCES: &str = "-c -e -m -r -R -f -i --recursive --version --help -V -h";

/// Signs of a script in which something else may be the input: redirections, groups, loops, substitutions.
const REDIRECTIONS: &[char] = &['<', '(', '{', '`'];

/// A hint for a command that ended well and had read nothing.
pub fn read_nothing(work: &Work) -> Option<String> {
    let Work::Command(command) = work else {
        return None;
    };
    if command.stdin.is_some() {
        return None;
    }
    let program = match &command.program {
        Program::Argv(words) => reader(words),
        Program::Script(script) | Program::ReadOnlyScript(script) => reader_in(script),
        Program::File(_) => None,
    }?;
    Some(format!(
        "`{program}` read standard input, which is empty here: pass `stdin`, or name a file"
    ))
}

/// The first program of the script that reads standard input for certain.
fn reader_in(script: &str) -> Option<String> {
    if script.contains(REDIRECTIONS) {
        return None;
    }
    script
        .split([';', '\n', '&'])
        .filter_map(|pipeline| pipeline.trim_start_matches('|').split('|').next())
        .filter_map(shlex::split)
        .find_map(|words| reader(&words))
}

/// The program, if these words start one that reads standard input.
fn reader(words: &[String]) -> Option<String> {
    let mut words = words.iter().skip_while(|word| word.contains('='));
    let program = words.next()?.rsplit('/').next()?;
    let is_meant = |(_, names): &(usize, &str)| names.split(' ').any(|name| name == program);
    let (most, _) = READERS.into_iter().find(is_meant)?;
    let mut operands = 0;
    for word in words {
        match word.as_str() {
            "-" => {}
            option if option.starts_with('-') => {
                if OTHER_SOURCES.split(' ').any(|other| option.starts_with(other)) {
                    return None;
                }
            }
            // The number of an option such as `-n 5`.
            number if number.parse::<u64>().is_ok() => {}
            _ => operands += 1,
        }
    }
    (operands <= most).then(|| program.to_owned())
}

#[cfg(test)]
#[path = "no_input_tests.rs"]
mod tests;
