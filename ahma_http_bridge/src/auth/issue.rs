//! New tokens. Only their hashes are stored.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ahma_common::secret::Secret;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::Role;
use super::token_file::{TokenEntry, TokenError, TokensFile, lock_for_edit, read_file, write_file};
use super::tokens::KnownToken;
use crate::digest::{hex, random_secret, sha256};

/// Parameters of a new token.
#[derive(Debug, Clone)]
pub struct TokenParams {
    pub name: String,
    pub lifetime: Option<Duration>,
    pub scope: Option<PathBuf>,
    pub max_sessions: Option<usize>,
    /// Patterns of tool names.
    pub tools: Option<String>,
    pub role: Role,
}

/// A new token. Only its hash is kept.
#[derive(Debug, Clone)]
pub struct IssuedToken {
    pub token: Secret,
    /// True if there was one of this name, which is invalid from now on.
    pub replaced: bool,
    /// True if a token of the file is confined to a scope: without `--session-isolation` the file is refused.
    pub needs_isolation: bool,
}

/// Makes a token and adds its hash to the file. A token of the same name is replaced.
pub fn issue_token(file: &Path, params: TokenParams) -> Result<IssuedToken, TokenError> {
    let wrong = |reason: String| TokenError::Entry {
        path: file.to_owned(),
        name: params.name.clone(),
        reason,
    };
    if params.max_sessions == Some(0) {
        return Err(wrong("would be of no use without any session".to_owned()));
    }
    let token = format!("ahma_{}", random_secret());
    let expires = match params.lifetime {
        None => None,
        Some(lifetime) => {
            let lifetime = time::Duration::try_from(lifetime).map_err(|_| TokenError::Lifetime)?;
            let expires = OffsetDateTime::now_utc()
                .checked_add(lifetime)
                .ok_or(TokenError::Lifetime)?;
            Some(
                expires
                    .truncate_to_second()
                    .format(&Rfc3339)
                    .map_err(|error| wrong(format!("has a wrong expires: {error}")))?,
            )
        }
    };
    let entry = TokenEntry {
        name: params.name.clone(),
        sha256: hex(sha256(token.as_bytes())),
        expires,
        scope: params.scope.clone(),
        max_sessions: params.max_sessions,
        tools: params.tools.clone(),
        role: params.role,
    };
    KnownToken::new(&entry, usize::MAX).map_err(wrong)?;
    let _lock = lock_for_edit(file)?;
    let mut tokens = if file.exists() {
        read_file(file)?
    } else {
        TokensFile::default()
    };
    let before = tokens.tokens.len();
    tokens.tokens.retain(|known| known.name != entry.name);
    let replaced = tokens.tokens.len() < before;
    tokens.tokens.push(entry);
    write_file(file, &tokens)?;
    Ok(IssuedToken {
        token: Secret::new(token),
        replaced,
        needs_isolation: tokens.tokens.iter().any(|token| token.scope.is_some()),
    })
}
