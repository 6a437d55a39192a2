//! Real toolchains behind the wall.
