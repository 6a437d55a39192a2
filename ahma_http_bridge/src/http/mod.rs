//! The HTTP side of the protocol that is no route: versions, negotiation, refusals, guards, the policy of pages, event
//! streams.

pub(crate) mod compression;
pub(crate) mod guard;
pub(crate) mod negotiate;
pub(crate) mod page_policy;
pub(crate) mod refusal;
pub(crate) mod sse;
pub(crate) mod standard_headers;
