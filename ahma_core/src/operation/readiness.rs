//! Signs that a command which keeps running is ready for use.

use std::{future::pending, net::Ipv4Addr, time::Duration};

use regex::Regex;
use tokio::{net::TcpStream, time::sleep};

use crate::{call::Ready, observe::StreamName};

/// Pause between two attempts to connect: short beside the time that a server takes to start.
const PAUSE: Duration = Duration::from_millis(100);

/// Looks for the line by which an operation reports that it is ready.
#[derive(Debug)]
pub(super) struct ReadyLine {
    pattern: Regex,
    /// The lines of both streams that have not ended yet.
    unfinished: [Vec<u8>; 2],
}

impl ReadyLine {
    /// A longer line is looked at in pieces.
    const MAX_LINE: usize = 64 << 10;

    pub(super) fn of(ready: &Ready) -> Option<Self> {
        match ready {
            Ready::Line(pattern) => Some(Self {
                pattern: pattern.clone(),
                unfinished: Default::default(),
            }),
            Ready::Port(_) => None,
        }
    }

    /// Takes output in; true if it has a line that matches, which need not have ended.
    pub(super) fn feed(&mut self, source: StreamName, bytes: &[u8]) -> bool {
        let unfinished = &mut self.unfinished[usize::from(source == StreamName::Stderr)];
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            unfinished.extend_from_slice(piece);
            let line = String::from_utf8_lossy(unfinished);
            if self.pattern.is_match(line.trim_end_matches(['\n', '\r'])) {
                return true;
            }
            if piece.ends_with(b"\n") || unfinished.len() > Self::MAX_LINE {
                unfinished.clear();
            }
        }
        false
    }
}

/// Waits until the port of `ready` accepts connections. Without one it never returns.
pub(super) async fn listening(ready: Option<&Ready>) {
    let Some(Ready::Port(port)) = ready else {
        return pending().await;
    };
    while TcpStream::connect((Ipv4Addr::LOCALHOST, *port)).await.is_err() {
        sleep(PAUSE).await;
    }
}
