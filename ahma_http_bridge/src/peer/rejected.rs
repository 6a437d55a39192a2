//! The reasons why a connection may not use the bridge.

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PeerRejected {
    #[error(
        "this connection comes from a command, and commands may not use the server without a token; hint: serve with \
         --auth token"
    )]
    Command,
    #[error(
        "the program at the other end of this connection cannot be identified, so it may be a command; hint: serve \
         with --auth token and give the program one"
    )]
    Unidentified,
    #[error(
        "this connection comes from another user of this machine; hint: start `ahma_mcp console` as that user"
    )]
    OtherUser,
}
