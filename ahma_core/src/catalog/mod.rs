//! The tools that are offered: names, descriptions, input schemas.
