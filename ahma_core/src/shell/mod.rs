//! Warm shells: confined, started before they are needed, each used once.
