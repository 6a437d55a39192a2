//! Enforcement of a policy on Linux. Each file is one layer; `jail` puts them on in this order:
//! namespaces and mounts, Landlock, capabilities and limits, seccomp.

pub(crate) mod landlock;
pub(crate) mod namespaces;
pub(crate) mod privileges;
pub(crate) mod seccomp;
