//! What the jail and its supervisors do by means that only Linux has.

pub(super) mod broker;
pub(super) mod cgroup;
pub(super) mod descendants;
pub(super) mod notified_call;
pub(super) mod process_budget;
mod requester;
