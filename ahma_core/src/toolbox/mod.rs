//! The tools directory: loading, reloading and availability.
