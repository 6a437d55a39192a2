//! Guesses that the sandbox was in a command's way, from what the command printed.
//!
//! The kernel does not report what it refused, so the output is all there is. A hint is labelled as a guess. It names
//! every path or the connection, says what is open here, and only then what the user could open, where that would help.
//! `guess` reads the output; `complaint` knows the words of programs, `advice` those of a hint.

mod advice;
mod complaint;
mod connection;
mod guess;
mod terminal;

pub use guess::{HintContext, hint, hint_about_check, hint_after_success};
