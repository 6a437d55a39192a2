//! The tools that come with the server: they look after operations that other tools started.
//!
//! `registry` knows them by name. The shell and the file tools are in the catalog and run like any tool.

mod call_any;
mod cancel;
mod find;
mod lookup;
mod output;
mod output_file;
mod output_findings;
mod output_lines;
mod registry;
mod status;
mod wait;

pub(super) use call_any::{NAME as CALL_ANY, definition as call_any, target as call_target};
pub(super) use output_file::{FILE_WRITE, with_content};
pub(super) use registry::{Builtin, tools};
pub(crate) use registry::{BuiltinTool, descriptions};
pub(super) use status::{RemoteReport, StatusReport, report as status_report};
