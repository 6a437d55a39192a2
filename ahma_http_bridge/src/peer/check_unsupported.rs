//! Stand-in for systems whose kernel does not tell which process holds a connection: all of this machine may use the bridge.

use std::net::SocketAddr;
use std::sync::Arc;

use super::PeerRejected;

#[derive(Debug)]
pub(crate) struct UnsupportedPeerCheck;

impl UnsupportedPeerCheck {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self)
    }

    pub(crate) async fn judge(
        self: &Arc<Self>,
        _theirs: SocketAddr,
        _ours: SocketAddr,
    ) -> Result<(), PeerRejected> {
        Ok(())
    }
}
