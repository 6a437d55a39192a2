//! Listening to what commands print.

use std::fmt::Debug;

use crate::observe::StreamName;

/// Hears every byte that a command prints, when it is read. A command that is listened to has two streams unless its tool
/// file says otherwise.
pub trait OutputTap: Debug + Send + Sync {
    fn take(&self, source: StreamName, bytes: &[u8]);
}
