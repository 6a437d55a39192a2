//! The mark of an operation: names of services that do not exist, of which its profile allows one to be looked up and denies
//! the other. A process can neither leave its sandbox nor enter another, so a process that may look up the one and not
//! the other belongs to the operation, wherever it has gone.

use std::{fmt, num::ParseIntError, str::FromStr};

/// The mark of one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::jail) struct Mark(u64);

/// Random, and small enough for the resource limit by which the stand-in for the kernel passes it on.
const BITS: u32 = 62;

impl Mark {
    pub(in crate::jail) fn random() -> Self {
        Self(rand::random::<u64>() >> (u64::BITS - BITS))
    }

    /// The name that may be looked up.
    pub(in crate::jail) fn allowed(self) -> String {
        format!("org.ahma.mark.{self}.allowed")
    }

    /// The name that may not.
    pub(in crate::jail) fn denied(self) -> String {
        format!("org.ahma.mark.{self}.denied")
    }

    #[cfg(not(target_os = "macos"))]
    pub(in crate::jail) fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", self.0)
    }
}

impl FromStr for Mark {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        u64::from_str_radix(text, 16).map(Self)
    }
}
