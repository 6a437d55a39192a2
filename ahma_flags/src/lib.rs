//! How the programs read single flags and the variables that stand for them, and how they put words for people.
//!
//! `value` has the parsers of durations, sizes, numbers, switches and addresses; `variables` knows which environment variable
//! stands for which flag; `words` makes text fit for a terminal. Nothing here knows what a flag is for, and nothing reads
//! the command line.

pub mod value;
pub mod variables;
pub mod words;
