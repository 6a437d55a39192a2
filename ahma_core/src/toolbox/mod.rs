//! The tools directory: loading, reloading and availability.
//!
//! One task, in `actor`, owns everything that changes: the text of the files and the programs that were found. It
//! publishes a new [`Toolbox`] whenever either changes; all others only read. A file with a mistake never takes another
//! one down, and a bad edit leaves the version before it in place.

mod actor;
mod announced;
mod availability;
mod file_cache;
mod known_answers;
mod load;
mod program_lookup;
mod state;
mod watch;

pub use actor::{ToolboxHandle, ToolboxSettings, open};
pub use announced::{AnnouncedTools, announced};
pub use availability::{AvailabilityChecker, check_availability};
pub use load::read_tool_file;
#[cfg(feature = "client")]
pub(crate) use program_lookup::first_executable;
pub use state::{LackingTools, Toolbox, Unavailable};
