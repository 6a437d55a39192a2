//! The `ahma_mcp` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = ahma_core::jail::run_if_asked() {
        return code;
    }
    ExitCode::SUCCESS
}
