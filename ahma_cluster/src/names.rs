//! Names of pools, subjects and streams. Nothing that a client chose is ever part of a subject.

use std::{fmt, str::FromStr};

use sha2::{Digest as _, Sha256};

/// A group of workers that take each other's place. Cheap enough to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pool(String);

/// Reason why a text does not name a pool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` does not name a pool: use 1 to 32 of a–z, 0–9 and `-`")]
pub struct BadPool(String);

const MAX_POOL_CHARACTERS: usize = 32;

impl FromStr for Pool {
    type Err = BadPool;

    fn from_str(name: &str) -> Result<Self, BadPool> {
        let is_allowed = |character: char| {
            character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-'
        };
        if name.is_empty() || name.len() > MAX_POOL_CHARACTERS || !name.chars().all(is_allowed) {
            return Err(BadPool(name.to_owned()));
        }
        Ok(Self(name.to_owned()))
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Pool {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The events of one operation.
    pub(crate) fn operation_subject(&self, owner: &str, operation: &str) -> String {
        format!("ahma.op.{self}.{owner}.{operation}")
    }

    /// The place of an operation in the queue.
    pub(crate) fn job_subject(&self, operation: &str) -> String {
        format!("ahma.job.{self}.{operation}")
    }

    /// The output of one attempt.
    pub(crate) fn output_subject(&self, owner: &str, operation: &str, attempt: u32) -> String {
        format!("ahma.out.{self}.{owner}.{operation}.{attempt}")
    }

    /// The output of all attempts of an operation.
    pub(crate) fn outputs_subject(&self, owner: &str, operation: &str) -> String {
        format!("ahma.out.{self}.{owner}.{operation}.*")
    }

    /// Heartbeats of a worker; `*` for those of all.
    pub(crate) fn beat_subject(&self, worker: &str) -> String {
        format!("ahma.hb.{self}.{worker}")
    }

    /// Asks all workers for a beat.
    pub(crate) fn roll_call_subject(&self) -> String {
        format!("ahma.roll.{self}")
    }

    /// Requests to one worker.
    pub(crate) fn control_subject(&self, worker: &str) -> String {
        format!("ahma.ctl.{self}.{worker}")
    }

    /// The record of a session; `*` for those of all.
    pub(crate) fn session_subject(&self, name: &str) -> String {
        format!("ahma.ses.{self}.{name}")
    }

    pub(crate) fn operations_stream(&self) -> String {
        self.stream("OPS")
    }

    pub(crate) fn jobs_stream(&self) -> String {
        self.stream("JOBS")
    }

    pub(crate) fn output_stream(&self) -> String {
        self.stream("OUT")
    }

    pub(crate) fn sessions_stream(&self) -> String {
        self.stream("SESSIONS")
    }

    fn stream(&self, what: &str) -> String {
        format!("AHMA_{}_{what}", self.0.to_ascii_uppercase())
    }
}

/// The inbox of a credential; no other may listen there.
pub(crate) fn inbox_of(public_key: &str) -> String {
    format!("_INBOX_{public_key}")
}

/// The consumer of the queue, which all workers of a pool share.
pub(crate) const QUEUE_CONSUMER: &str = "workers";

/// Owner and operation of a subject of the log.
pub(crate) fn parts_of_operation_subject(subject: &str) -> Option<(&str, &str)> {
    match subject.split('.').collect::<Vec<_>>().as_slice() {
        ["ahma", "op", _, owner, operation] => Some((owner, operation)),
        _ => None,
    }
}

/// A principal's name in subjects; the same everywhere, and telling nothing about it.
pub fn owner_of(principal: Option<&str>) -> String {
    let mut hash = Sha256::new();
    // A principal that is called like the local user is not the local user.
    hash.update([u8::from(principal.is_some())]);
    hash.update(principal.unwrap_or_default());
    hash.finalize()
        .iter()
        .take(OWNER_CHARACTERS)
        .map(|byte| character(*byte))
        .collect()
}

/// The name under which a session is recorded. The session itself cannot be found by it.
pub(crate) fn record_name(session: &str) -> String {
    Sha256::digest(session)
        .iter()
        .map(|byte| character(*byte))
        .collect()
}

/// 100 bits: a second principal with the same name cannot be found.
const OWNER_CHARACTERS: usize = 20;

/// A name that nothing else has: `prefix` and 80 random bits.
pub fn new_name(prefix: &str) -> String {
    let random: [u8; 16] = rand::random();
    let random: String = random.iter().map(|byte| character(*byte)).collect();
    format!("{prefix}{random}")
}

/// Crockford's base 32: no letter that looks like a digit.
fn character(byte: u8) -> char {
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    char::from(ALPHABET[usize::from(byte & 31)])
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
