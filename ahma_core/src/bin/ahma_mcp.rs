//! The `ahma_mcp` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    // The same binary is also the helper that starts commands; that role must begin before any thread exists.
    if let Some(code) = ahma_core::jail::run_if_asked() {
        return code;
    }
    ahma_core::app::main()
}
