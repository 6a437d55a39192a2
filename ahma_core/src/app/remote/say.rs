//! Messages to the user on stderr. Parts of them come from servers and files of others.

use std::io::Write as _;

use ahma_common::words::visible;

/// For the person at the terminal.
pub(super) fn tell(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", visible(line));
}
