//! What the user is told on stderr. Part of it comes from servers and files of others.

use std::io::Write as _;

use ahma_flags::words::visible;

/// For the person at the terminal.
pub(super) fn tell(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", visible(line));
}
