//! The reason why `sandbox-exec` of macOS does not confine commands, and the remedy.

use crate::app::exit::Exit;

/// Messages of `sandbox-exec` when it runs in a sandbox already.
const NESTED: [&str; 2] = ["Operation not permitted", "in a sandbox already"];

/// Exit code and advice after the reason that the helper process gave.
pub(in crate::app) fn seatbelt_remedy(reason: &str) -> (Exit, &'static str) {
    if NESTED.iter().any(|words| reason.contains(words)) {
        (
            Exit::MissingPrerequisite,
            "another sandbox is around this program, and macOS puts none inside another: start ahma_mcp outside of it; inside \
             one that you trust, --no-sandbox or AHMA_NO_SANDBOX=1 runs commands without another",
        )
    } else if reason.contains("is missing") {
        (
            Exit::MissingPrerequisite,
            "every macOS has it, so this system was changed: restore it; inside another sandbox that you trust, --no-sandbox \
             or AHMA_NO_SANDBOX=1 runs commands without one",
        )
    } else {
        (
            Exit::Internal,
            "this version of macOS does not take the sandbox profile: please report it with the output of sw_vers; inside \
             another sandbox that you trust, --no-sandbox or AHMA_NO_SANDBOX=1 runs commands without one",
        )
    }
}
