//! Those who write operations down, as the engine knows them.

use std::fmt;

use super::Operation;

/// Hears what is worth writing down about operations. Never holds the caller up.
pub trait Journal: fmt::Debug + Send + Sync {
    /// An operation is new, or has ended.
    fn changed(&self, operation: &Operation);

    /// A client was given the result of an operation.
    fn collected(&self, operation: &Operation);
}
