//! The tokens file as it is written: no token, but the hash of each.

use std::fs::File;
use std::path::{Path, PathBuf};

use ahma_common::private_file;
use serde::{Deserialize, Serialize};

use super::Role;

#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("tokens file {path} cannot be used: {reason}")]
    File { path: PathBuf, reason: String },
    #[error("tokens file {path} has another form than {{\"tokens\": [...]}}: {reason}")]
    Form { path: PathBuf, reason: String },
    #[error("tokens file {path}: token `{name}` {reason}")]
    Entry {
        path: PathBuf,
        name: String,
        reason: String,
    },
    #[error(
        "--expires goes beyond the year 9999; give a shorter time such as 365d, or leave it out for a token that does not expire"
    )]
    Lifetime,
}

/// One line of the tokens file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with `name` and `sha256`")]
pub struct TokenEntry {
    pub name: String,
    /// The SHA-256 of the token, in hexadecimal.
    pub sha256: String,
    /// RFC 3339; without it the token does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// The directory the client is confined to, with `--session-isolation`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_sessions: Option<usize>,
    /// The tools the client may list and call, such as `git_*,cargo_test`; all if it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<String>,
    /// The use it is for; `agent` if it does not say.
    #[serde(default, skip_serializing_if = "is_agent")]
    pub role: Role,
}

fn is_agent(role: &Role) -> bool {
    *role == Role::Agent
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with `tokens`")]
pub(super) struct TokensFile {
    pub(super) tokens: Vec<TokenEntry>,
}

/// The entries of a tokens file.
pub fn list_tokens(file: &Path) -> Result<Vec<TokenEntry>, TokenError> {
    Ok(read_file(file)?.tokens)
}

/// Takes a token out of the file. False if there is none of that name.
pub fn revoke_token(file: &Path, name: &str) -> Result<bool, TokenError> {
    let _lock = lock_for_edit(file)?;
    let mut tokens = read_file(file)?;
    let before = tokens.tokens.len();
    tokens.tokens.retain(|known| known.name != name);
    if tokens.tokens.len() == before {
        return Ok(false);
    }
    write_file(file, &tokens)?;
    Ok(true)
}

pub(super) fn read_file(path: &Path) -> Result<TokensFile, TokenError> {
    let text = std::fs::read_to_string(path).map_err(|error| TokenError::File {
        path: path.to_owned(),
        reason: error.to_string(),
    })?;
    serde_json::from_str(&text).map_err(|error| TokenError::Form {
        path: path.to_owned(),
        reason: error.to_string(),
    })
}

impl TokenEntry {
    pub(super) fn unfit(&self, path: &Path, reason: String) -> TokenError {
        TokenError::Entry {
            path: path.to_owned(),
            name: self.name.clone(),
            reason,
        }
    }
}

/// Locks the file for an edit: of two at once, one would bring back what the other removed.
pub(super) fn lock_for_edit(path: &Path) -> Result<File, TokenError> {
    private_file::lock_for_edit(path).map_err(|error| TokenError::File {
        path: path.to_owned(),
        reason: error.to_string(),
    })
}

/// Replaces the file in one step, so that a running bridge never reads half of it.
pub(super) fn write_file(path: &Path, tokens: &TokensFile) -> Result<(), TokenError> {
    let unusable = |reason: String| TokenError::File {
        path: path.to_owned(),
        reason,
    };
    let mut text = serde_json::to_string_pretty(tokens).map_err(|error| unusable(error.to_string()))?;
    text.push('\n');
    private_file::replace(path, text.as_bytes()).map_err(|error| unusable(error.to_string()))
}
