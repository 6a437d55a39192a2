//! Means of the jail and its supervisors that only Linux has: confinement by namespaces, Landlock and seccomp, limits
//! by namespace and cgroup, the walk through the process tree, and the broker.

mod broker;
mod cgroup;
pub(super) mod confine;
mod descendants;
pub(super) mod family;
mod light_supervisor;
mod notified_call;
mod process_budget;
mod requester;
mod stack_text;
mod stacks;
pub(super) mod strays;
pub(super) mod system;
pub(super) mod wall;
