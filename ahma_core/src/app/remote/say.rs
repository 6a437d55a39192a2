//! Messages to the user on stderr. Parts of them come from servers and files of others.

use ahma_common::words::visible;

use crate::app::exit::notice;

/// Writes a line without control characters.
pub(super) fn tell(line: &str) {
    notice(visible(line));
}
