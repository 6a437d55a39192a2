//! From a client's answer to `roots/list` to the directory a session is confined to.
//!
//! A root that cannot be a scope is refused with a reason that the client can read; it is never replaced by
//! something wider.

use std::path::{Path, PathBuf};

use ahma_common::words::fitting;
use serde::Deserialize;
use serde_json::value::RawValue;
use url::Url;

use super::state::RootsAnswer;

/// Longer than any path.
const MAX_SHOWN_BYTES: usize = 4096;

/// Limits of a client's root.
#[derive(Debug, Clone)]
pub(crate) struct RootsRule {
    pub(crate) default_scope: PathBuf,
    /// The directory in which every scope must lie, if there is one.
    pub(crate) within: Option<PathBuf>,
}

#[derive(Deserialize)]
struct ListRootsResult<'a> {
    #[serde(borrow, default)]
    roots: Vec<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct Root {
    uri: String,
}

impl RootsRule {
    /// Reads the `result` of `roots/list`; `None` stands for an error answer, as of a client that cannot say.
    pub(crate) async fn judge(&self, result: Option<&RawValue>) -> RootsAnswer {
        let default = RootsAnswer::Default(self.default_scope.clone());
        let Some(result) = result else {
            return default;
        };
        let roots = match listed(result) {
            Ok(roots) => roots,
            Err(error) => {
                return RootsAnswer::Unusable(format!("the answer to roots/list cannot be read: {error}"));
            }
        };
        let Some((first, others)) = roots.split_first() else {
            return default;
        };
        if !others.is_empty() {
            tracing::warn!(ignored = ?others, "only the first root is the scope");
        }
        match self.scope_of(&first.uri).await {
            Ok(scope) => RootsAnswer::Scope(scope),
            Err(why) => RootsAnswer::Unusable(why),
        }
    }

    async fn scope_of(&self, uri: &str) -> Result<PathBuf, String> {
        let named = local_path(uri)?;
        let found = tokio::fs::canonicalize(&named).await;
        let scope = match &self.within {
            None => found.map_err(|error| format!("root {}: cannot be used: {error}", shown(uri)))?,
            // A confined client must not find out what there is outside, nor where a link leads to.
            Some(outer) => found
                .ok()
                .filter(|scope| scope.starts_with(outer))
                .ok_or_else(|| {
                    format!(
                        "root {}: this client is confined to {}, and the root must be a directory there",
                        shown(uri),
                        outer.display()
                    )
                })?,
        };
        let is_directory = tokio::fs::metadata(&scope)
            .await
            .is_ok_and(|found| found.is_dir());
        if !is_directory {
            return Err(format!(
                "root {}: {} is not a directory",
                shown(uri),
                scope.display()
            ));
        }
        if is_too_wide(&scope, std::env::home_dir().as_deref()) {
            return Err(format!(
                "root {}: {} is too wide for a scope; open a project in it",
                shown(uri),
                scope.display()
            ));
        }
        Ok(scope)
    }
}

fn listed(result: &RawValue) -> Result<Vec<Root>, String> {
    let list: ListRootsResult<'_> = object(result)?;
    list.roots.into_iter().map(object).collect()
}

/// Serde would read an array into a struct, field by field.
fn object<'a, T: Deserialize<'a>>(value: &'a RawValue) -> Result<T, String> {
    if !value.get().starts_with('{') {
        return Err("expected an object".to_owned());
    }
    serde_json::from_str(value.get()).map_err(|error| error.to_string())
}

/// As much of a URI as a reason may repeat: the client reads it in every answer of a session that ended so.
fn shown(uri: &str) -> &str {
    fitting(uri, MAX_SHOWN_BYTES)
}

/// True if a directory is, or contains, the user's home; `/` contains everything.
fn is_too_wide(scope: &Path, home: Option<&Path>) -> bool {
    let home = home.map(|home| home.canonicalize().unwrap_or_else(|_| home.to_owned()));
    scope == Path::new("/") || home.is_some_and(|home| home.starts_with(scope))
}

/// The path of a `file:` URI on this machine, percent-decoded.
fn local_path(uri: &str) -> Result<PathBuf, String> {
    let url = Url::parse(uri).map_err(|error| format!("root {}: not a URI: {error}", shown(uri)))?;
    let uri = shown(uri);
    if url.scheme() != "file" {
        return Err(format!("root {uri}: only file:// roots can be a scope"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(format!(
            "root {uri}: a root has no query and no fragment; percent-encode '?' and '#'"
        ));
    }
    url.to_file_path()
        .map_err(|()| format!("root {uri}: not a path on this machine"))
}

#[cfg(test)]
#[path = "roots_tests.rs"]
mod tests;
