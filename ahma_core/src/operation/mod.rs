//! Operations: one run of one plan, from queued to its one Outcome.
