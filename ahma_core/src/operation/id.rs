//! Names of operations.

use std::{borrow::Borrow, fmt, sync::Arc};

use serde::{Serialize, Serializer};

/// `op_` and eight random-looking characters; unique for the stage of an engine.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OperationId(Arc<str>);

impl OperationId {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Outside tests only an engine names operations.
    #[cfg(test)]
    pub(crate) fn named(name: &str) -> Self {
        Self(name.into())
    }
}

impl Borrow<str> for OperationId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for OperationId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// Makes ids that never repeat: a counter, scattered over 40 bits by a bijection that is different in every engine.
#[derive(Debug)]
pub(super) struct IdSource {
    /// Odd, so that multiplying by it modulo 2^40 maps no two counters to one id.
    multiplier: u64,
    offset: u64,
    next: u64,
}

impl IdSource {
    /// Crockford's base 32: no letter that looks like a digit.
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    const CHARACTERS: u32 = 8;

    pub(super) fn new() -> Self {
        Self {
            multiplier: rand::random::<u64>() | 1,
            offset: rand::random(),
            next: 0,
        }
    }

    pub(super) fn next(&mut self) -> OperationId {
        let scattered = self.next.wrapping_mul(self.multiplier).wrapping_add(self.offset);
        self.next += 1;
        let mut text = String::with_capacity(3 + Self::CHARACTERS as usize);
        text.push_str("op_");
        for place in (0..Self::CHARACTERS).rev() {
            let digit = (scattered >> (5 * place)) & 31;
            text.push(char::from(Self::ALPHABET[digit as usize]));
        }
        OperationId(text.into())
    }
}

#[cfg(test)]
#[path = "id_tests.rs"]
mod tests;
