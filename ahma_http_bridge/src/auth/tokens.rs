//! Accepted tokens, found by the hash of the one that is presented.
//!
//! The file holds no token, so reading it gives no access. Every entry is compared in constant time, and all
//! of them for every request, so timing tells nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ahma_common::ToolPatterns;
use ahma_common::secret::Secret;
use parking_lot::RwLock;
use subtle::ConstantTimeEq;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::token_file::{TokenEntry, TokenError, read_file, revoke_token};
use super::{Principal, Role};
use crate::digest::{Hash, from_hex, sha256};
use crate::file_stamp::FileStamp;
use crate::isolation::Isolation;

/// Result of checking a presented token.
#[derive(Debug)]
pub(crate) enum Checked {
    Valid(Arc<Principal>),
    Expired,
    Unknown,
    /// The file cannot be read, so no token can be checked.
    NoFile,
}

#[derive(Debug)]
pub(super) struct KnownToken {
    principal: Arc<Principal>,
    hash: Hash,
    expires: Option<OffsetDateTime>,
}

#[derive(Debug)]
pub(crate) struct Tokens {
    /// `None` while the file cannot be read: rights that may have been taken away are not kept.
    known: RwLock<Option<Vec<KnownToken>>>,
    file: Option<PathBuf>,
    isolation: Isolation,
    /// Sessions of a client whose entry does not say.
    max_sessions: usize,
    seen: RwLock<Option<FileStamp>>,
}

impl Tokens {
    pub(crate) fn single(token: &Secret) -> Self {
        let principal = Arc::new(Principal {
            name: "token".into(),
            role: Some(Role::Agent),
            is_known: true,
            scope: None,
            max_sessions: None,
            tools: None,
        });
        let known = vec![KnownToken {
            principal,
            hash: sha256(token.expose().as_bytes()),
            expires: None,
        }];
        Self {
            known: RwLock::new(Some(known)),
            file: None,
            isolation: Isolation::Shared,
            max_sessions: usize::MAX,
            seen: RwLock::new(None),
        }
    }

    /// Refuses a file with any entry that is no good.
    pub(crate) fn from_file(
        path: &Path,
        isolation: Isolation,
        max_sessions: usize,
    ) -> Result<Self, TokenError> {
        let seen = FileStamp::of(path);
        let Entries { known, mut unfit } = read(path, isolation, max_sessions)?;
        if !unfit.is_empty() {
            return Err(unfit.swap_remove(0));
        }
        Ok(Self {
            known: RwLock::new(Some(known)),
            file: Some(path.to_owned()),
            isolation,
            max_sessions,
            seen: RwLock::new(seen),
        })
    }

    pub(crate) fn check(&self, token: &str) -> Checked {
        // A look at the file's date costs next to nothing, and a token that was revoked is out at once.
        self.refresh();
        let hash = sha256(token.as_bytes());
        let now = OffsetDateTime::now_utc();
        let known = self.known.read();
        let Some(known) = &*known else {
            return Checked::NoFile;
        };
        let mut checked = Checked::Unknown;
        for known in known {
            if bool::from(known.hash.ct_eq(&hash)) {
                checked = match known.expires {
                    Some(expires) if expires <= now => Checked::Expired,
                    _ => Checked::Valid(Arc::clone(&known.principal)),
                };
            }
        }
        checked
    }

    pub(crate) fn described(&self) -> Vec<serde_json::Value> {
        let known = self.known.read();
        let described = known.iter().flatten().map(|known| {
            serde_json::json!({
                "name": &*known.principal.name,
                "role": known.principal.role,
                "scope": known.principal.scope,
                "max_sessions": known.principal.max_sessions,
                "tools": known.principal.tools.as_deref(),
                "expires": known.expires.and_then(|expires| expires.format(&Rfc3339).ok()),
            })
        });
        described.collect()
    }

    pub(crate) fn revoke(&self, name: &str) -> Result<bool, TokenError> {
        let Some(file) = &self.file else {
            return Ok(false);
        };
        let revoked = revoke_token(file, name)?;
        self.refresh();
        Ok(revoked)
    }

    /// True if a client is still confined as it was. One that is no longer known is refused when it comes.
    pub(crate) fn confines_as_before(&self, principal: &Principal) -> bool {
        let known = self.known.read();
        let mut now = known.iter().flatten().map(|known| &known.principal);
        now.find(|now| now.name == principal.name)
            .is_none_or(|now| now.scope == principal.scope)
    }

    /// Reads the file again if it changed. What cannot be understood gives no rights: a bad entry to its owner, a bad file to all.
    pub(crate) fn refresh(&self) {
        let Some(path) = &self.file else { return };
        let now = FileStamp::of(path);
        let mut seen = self.seen.write();
        if *seen == now {
            return;
        }
        *seen = now;
        let known = match read(path, self.isolation, self.max_sessions) {
            Ok(Entries { known, unfit }) => {
                for error in unfit {
                    tracing::error!("not admitted: {error}");
                }
                tracing::info!(path = %path.display(), tokens = known.len(), "tokens file read again");
                Some(known)
            }
            Err(error) => {
                tracing::error!("no client is admitted until it can be read again: {error}");
                None
            }
        };
        *self.known.write() = known;
    }
}

/// Contents of a file: the valid entries, and what is wrong with the others.
struct Entries {
    known: Vec<KnownToken>,
    unfit: Vec<TokenError>,
}

fn read(path: &Path, isolation: Isolation, max_sessions: usize) -> Result<Entries, TokenError> {
    let mut entries = Entries {
        known: Vec::new(),
        unfit: Vec::new(),
    };
    let tokens = read_file(path)?.tokens;
    for entry in &tokens {
        // Both would have the same sessions.
        let is_double = tokens.iter().filter(|other| other.name == entry.name).count() > 1;
        let known = match is_double {
            true => Err("is there more than once; give each its own name".to_owned()),
            false => KnownToken::new(entry, max_sessions).and_then(|known| known.kept_with(isolation)),
        };
        match known {
            Ok(known) => entries.known.push(known),
            Err(reason) => entries.unfit.push(entry.unfit(path, reason)),
        }
    }
    Ok(entries)
}

const NEEDS_ISOLATION: &str = "is confined to a scope, which only --session-isolation keeps; serve with it, or issue the token without a scope";

impl KnownToken {
    /// Reads an entry; the error continues a sentence that begins with the token.
    pub(super) fn new(entry: &TokenEntry, max_sessions: usize) -> Result<Self, String> {
        if entry.name.trim().is_empty() || entry.name.chars().any(char::is_control) {
            return Err("needs a name that can be read".to_owned());
        }
        let hash = from_hex(&entry.sha256).ok_or("has a sha256 that is not 64 hexadecimal digits")?;
        let expires = entry
            .expires
            .as_deref()
            .map(|text| OffsetDateTime::parse(text, &Rfc3339))
            .transpose();
        let expires = expires.map_err(|error| format!("has a wrong expires: {error}"))?;
        let scope = entry.scope.as_deref().map(Path::canonicalize).transpose();
        let scope = scope.map_err(|error| format!("has a scope that cannot be used: {error}"))?;
        let tools = entry.tools.as_deref().map(str::parse::<ToolPatterns>).transpose();
        let tools = tools.map_err(|error| format!("has tools that cannot be used: {error}"))?;
        if tools.is_some() && entry.role != Role::Agent {
            return Err("is limited to some tools, but only an agent has any".to_owned());
        }
        let principal = Principal {
            name: entry.name.as_str().into(),
            role: Some(entry.role),
            is_known: true,
            scope,
            max_sessions: entry.max_sessions.or(Some(max_sessions)),
            tools: tools.map(|tools| tools.to_string().into()),
        };
        Ok(Self {
            principal: Arc::new(principal),
            hash,
            expires,
        })
    }

    /// Refuses a scope that could not be enforced: clients of a shared child are in one directory.
    fn kept_with(self, isolation: Isolation) -> Result<Self, String> {
        match isolation {
            Isolation::Shared if self.principal.scope.is_some() => Err(NEEDS_ISOLATION.to_owned()),
            Isolation::Shared | Isolation::PerSession => Ok(self),
        }
    }
}

#[cfg(test)]
#[path = "tokens_tests.rs"]
mod tests;
