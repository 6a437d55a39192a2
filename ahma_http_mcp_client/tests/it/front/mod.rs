//! A remote server on stdin and stdout, with clients and servers of both eras.

mod client;
mod eras;
mod leaving;
mod recovery;
mod subscriptions;
