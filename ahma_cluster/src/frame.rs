//! Frames: what a worker publishes of a running operation, and putting it together again.
//!
//! Frames are numbered by the bytes or findings before them, so that a reader drops what it has, sees what it lacks, and ends
//! with each byte once, whatever was sent twice or came in another order.

use std::collections::BTreeMap;

use bytes::{BufMut as _, Bytes, BytesMut};

/// One message of the output stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub kind: FrameKind,
    /// Number of bytes or findings before this frame; of progress, how many reports there were before.
    pub number: u64,
    pub data: Bytes,
}

/// Contents of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// Bytes of output.
    Output,
    /// One finding, as JSON.
    Finding,
    /// Progress, as JSON; the newest counts.
    Progress,
}

const HEAD_BYTES: usize = 9;

impl FrameKind {
    const ALL: [(u8, Self); 3] = [
        (b'o', Self::Output),
        (b'f', Self::Finding),
        (b'p', Self::Progress),
    ];
}

impl Frame {
    pub fn encode(&self) -> Bytes {
        let letter = FrameKind::ALL.iter().find(|(_, kind)| *kind == self.kind);
        let mut bytes = BytesMut::with_capacity(HEAD_BYTES + self.data.len());
        bytes.put_u8(letter.map_or(0, |(letter, _)| *letter));
        bytes.put_u64(self.number);
        bytes.extend_from_slice(&self.data);
        bytes.freeze()
    }

    /// Nothing if it is none: the sender may be newer than we are.
    pub fn decode(message: &Bytes) -> Option<Self> {
        let (head, _) = message.split_first_chunk::<HEAD_BYTES>()?;
        let (letter, number) = head.split_first_chunk::<1>()?;
        let (_, kind) = FrameKind::ALL.iter().find(|(known, _)| *known == letter[0])?;
        Some(Self {
            kind: *kind,
            number: u64::from_be_bytes(number.try_into().ok()?),
            data: message.slice(HEAD_BYTES..),
        })
    }
}

/// Puts the frames of one attempt together.
#[derive(Debug, Default)]
pub struct Assembler {
    /// Bytes of output given out.
    bytes: u64,
    findings: u64,
    progress: Option<u64>,
    /// Frames behind a gap, by their number.
    early_output: BTreeMap<u64, Bytes>,
    early_findings: BTreeMap<u64, Bytes>,
}

impl Assembler {
    /// Takes a frame; gives out what is next in order, as the data of whole frames.
    pub fn take(&mut self, frame: Frame) -> Vec<(FrameKind, Bytes)> {
        match frame.kind {
            FrameKind::Progress => {
                if self.progress.is_some_and(|newest| newest >= frame.number) {
                    return Vec::new();
                }
                self.progress = Some(frame.number);
                vec![(FrameKind::Progress, frame.data)]
            }
            FrameKind::Output => {
                // Of two frames that begin alike the longer one has all of the other.
                let known = self.early_output.entry(frame.number).or_default();
                if known.len() < frame.data.len() {
                    *known = frame.data;
                }
                self.output_in_order()
            }
            FrameKind::Finding => {
                self.early_findings.insert(frame.number, frame.data);
                self.findings_in_order()
            }
        }
    }

    /// Bytes of output, and findings, that were given out.
    pub fn reached(&self) -> (u64, u64) {
        (self.bytes, self.findings)
    }

    /// True if a frame waits for one before it.
    pub fn has_gap(&self) -> bool {
        !self.early_output.is_empty() || !self.early_findings.is_empty()
    }

    fn output_in_order(&mut self) -> Vec<(FrameKind, Bytes)> {
        let mut pieces = Vec::new();
        while let Some(first) = self.early_output.first_entry() {
            let start = *first.key();
            if start > self.bytes {
                break;
            }
            let mut data = first.remove();
            let known = usize::try_from(self.bytes - start).unwrap_or(usize::MAX);
            if known < data.len() {
                let new = data.split_off(known);
                self.bytes += new.len() as u64;
                pieces.push((FrameKind::Output, new));
            }
        }
        pieces
    }

    fn findings_in_order(&mut self) -> Vec<(FrameKind, Bytes)> {
        let mut pieces = Vec::new();
        while let Some(first) = self.early_findings.first_entry() {
            if *first.key() > self.findings {
                break;
            }
            let is_new = *first.key() == self.findings;
            let data = first.remove();
            if is_new {
                self.findings += 1;
                pieces.push((FrameKind::Finding, data));
            }
        }
        pieces
    }
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
