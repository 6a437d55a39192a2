//! The parts of the jail and its supervisors that use what only Linux has.

pub(super) mod broker;
pub(super) mod cgroup;
pub(super) mod descendants;
pub(super) mod notified_call;
pub(super) mod process_budget;
mod requester;
