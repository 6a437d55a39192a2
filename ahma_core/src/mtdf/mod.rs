//! Tool files (MTDF) as they stand on disk, and their validation into types that cannot be wrong.

pub mod stream;
