//! Names of operations, of the clients that they come from, and of the principals that they belong to.

use std::{borrow::Borrow, fmt, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// `op_` and ten random characters: one in a thousand million million guesses is right, and a history of a million names
/// has hardly ever two that are the same.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OperationId(Arc<str>);

impl OperationId {
    pub fn as_str(&self) -> &str {
        &self.0
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

impl<'de> Deserialize<'de> for OperationId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|name| Self(name.into()))
    }
}

impl OperationId {
    /// Crockford's base 32: no letter that looks like a digit.
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    const CHARACTERS: usize = 10;

    pub(super) fn random() -> Self {
        let mut bits = rand::random::<u64>();
        let mut text = String::with_capacity(3 + Self::CHARACTERS);
        text.push_str("op_");
        for _ in 0..Self::CHARACTERS {
            text.push(char::from(Self::ALPHABET[(bits & 31) as usize]));
            bits >>= 5;
        }
        Self(text.into())
    }

    /// The name of an operation that was written down.
    pub(crate) fn recalled(name: &str) -> Self {
        Self(name.into())
    }
}

/// One of several clients that share an engine, by the name that the bridge gave it. The default is the
/// client of an engine that has only one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ClientId(Option<Arc<str>>);

/// Name of clients of other front ends of a cluster; the bridge gives numbers.
const ELSEWHERE: &str = "elsewhere";

impl ClientId {
    /// A client of another front end. Sessions of different front ends may have the same name.
    pub fn elsewhere() -> Self {
        Self::named(ELSEWHERE)
    }

    pub fn is_elsewhere(&self) -> bool {
        self.name() == Some(ELSEWHERE)
    }

    pub fn named(name: &str) -> Self {
        Self(Some(name.into()))
    }

    /// The name it was given, if there are several clients.
    pub fn name(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

/// Origin of a call.
#[derive(Debug, Clone, Default)]
pub struct CallOrigin {
    pub client: ClientId,
    pub principal: Principal,
    /// Name that the client's program gives itself.
    pub program: Option<String>,
    /// The arguments as JSON, without secrets and without what is too long to write down.
    pub arguments: Option<String>,
}

/// The authenticated identity behind a client, which outlives its sessions: the name of a token or the subject of an OAuth
/// issuer. The default is the local user.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Principal(Option<Arc<str>>);

impl Principal {
    pub fn named(name: &str) -> Self {
        Self(Some(name.into()))
    }

    /// Its name; none for the local user.
    pub fn name(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

#[cfg(test)]
#[path = "id_tests.rs"]
mod tests;
