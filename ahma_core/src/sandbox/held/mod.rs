//! Descriptors, opened in ways that each system spells differently: to hold an inode, to pass through a directory, without
//! following a link, closed on exec from the beginning.

mod inherited;
#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "macos.rs"]
mod system;

pub(crate) use inherited::close_on_exec_all_but;
#[cfg(any(test, not(target_os = "linux")))]
pub(crate) use system::stream_pair;
pub(crate) use system::{
    HELD, NO_SIGNAL, PASSED, close_inherited, close_process_to_others, device_of, mode_of, nameless_file,
    open_beneath, open_process_to_others, open_terminal, open_without_links, path_of, peak_memory_kib, pipe,
    release_memory, same_path, set_mode, times_tell_changes, widen_pipe,
};
