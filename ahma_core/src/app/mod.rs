//! The edge: command line, settings, logging, start and stop.
