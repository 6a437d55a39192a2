//! Secrets that are made here, and hashes of what is compared.

use sha2::{Digest as _, Sha256};

pub(crate) type Hash = [u8; 32];

pub(crate) fn sha256(text: &[u8]) -> Hash {
    Sha256::digest(text).into()
}

/// The hash in hexadecimal.
pub(crate) fn hex(hash: Hash) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn from_hex(text: &str) -> Option<Hash> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[place * 2..place * 2 + 2], 16).ok()?;
    }
    Some(bytes)
}

/// A text of two UUIDs, which carry 244 random bits.
pub(crate) fn random_secret() -> String {
    let half = || uuid::Uuid::new_v4().simple();
    format!("{}{}", half(), half())
}
