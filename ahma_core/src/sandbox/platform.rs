//! The systems, which keep things in different places. A parameter wherever that matters, so that tests on one of them ask
//! for the other too.

/// A system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Platform {
    Linux,
    MacOs,
}

impl Platform {
    /// The one that this program was built for.
    pub const HERE: Self = if cfg!(target_os = "macos") {
        Self::MacOs
    } else {
        Self::Linux
    };
}

impl Default for Platform {
    fn default() -> Self {
        Self::HERE
    }
}
