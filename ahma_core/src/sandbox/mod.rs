//! The wall: what a command may read, write, run and reach, and how the kernel is told.
