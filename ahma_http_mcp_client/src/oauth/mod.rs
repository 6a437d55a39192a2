//! Logins to remote servers: the token file, the login itself, and the manager that refreshes tokens.
//!
//! - [`login`] runs one interactive login with [`browser`] and [`callback`]; [`pending`] is one that a connection waits for.
//! - [`token_file`] stores tokens, [`store`] is one server's entry, [`manager`] attaches and refreshes them.
//!
//! Tokens live in one file, mode 0600, that several processes share. Nothing here prints a token.

mod browser;
mod callback;
mod login;
mod manager;
mod pending;
mod store;
mod token_file;
#[cfg(test)]
mod token_file_tests;

pub use browser::open as open_in_browser;
pub use login::{Browser, LoginError, LoginOptions, login, logout};
pub(crate) use manager::manager_for;
pub(crate) use pending::PendingLogin;
pub use token_file::{TokenFile, TokenFileError};
