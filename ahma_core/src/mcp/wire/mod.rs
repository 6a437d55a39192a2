//! JSON-RPC messages on lines of text: one message in, one message out, one write each.
//!
//! rmcp brings a transport of this kind. Ours differs where a server that must not fall over has to: whatever arrives
//! before the handshake, garbage, over-long lines and repeated ids are answered or dropped one by one; answers are
//! written in the order they were given, at once and without a task in between; and the end of input is told to the
//! rest of the server, which rmcp by itself would find out five seconds later.

mod open_requests;
mod transport;

pub(crate) use transport::LineTransport;
