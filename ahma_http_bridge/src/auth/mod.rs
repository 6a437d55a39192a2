//! Who is asking.

mod principal;

pub use principal::AuthSettings;
pub(crate) use principal::Principal;
