//! A remote server served on stdin and stdout, for clients that can only start programs.
//!
//! Both sides may be of either era; rmcp speaks to each in its own. In between, the front relays requests, progress,
//! cancellation, notifications and the server's questions. The connection to the server is kept by the same actor as
//! that of a mounted server. The client's name and capabilities are read from its first message, so that the remote
//! server sees the client and not us.
//!
//! - [`serve`]: from the client's first message to its last.
//! - [`first_message`]: reads that first message ahead.
//! - [`relay`]: passes requests and notifications across; [`client_side`] and [`server_side`] call it.
//! - [`subscriptions`]: what the client has subscribed to, repeated to a new server.

mod client_side;
mod first_message;
mod relay;
mod serve;
mod server_side;
mod subscriptions;

pub use serve::{FrontNews, front};
