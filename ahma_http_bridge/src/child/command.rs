//! The command line of a child: program, arguments, environment.

use std::ffi::{OsStr, OsString};
use std::fmt::Debug;
use std::path::{Path, PathBuf};

/// Purpose of a child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spawn {
    /// It only answers `initialize`; it must not be able to run anything.
    Deferred,
    /// It serves one client inside this directory.
    Scoped(PathBuf),
    /// It serves every client.
    Shared,
}

/// Makes the command line of a child.
pub trait ChildFactory: Send + Sync + Debug {
    fn command(&self, spawn: &Spawn) -> ChildCommand;
}

/// A program to run. The environment is added to the bridge's own, less the bridge's credentials.
#[derive(Debug, Clone, Default)]
pub struct ChildCommand {
    pub program: OsString,
    pub args: Vec<OsString>,
    pub env: Vec<(OsString, OsString)>,
    /// The program keeps its clients apart: each request names its client in `_meta["ahma/client"]`, and
    /// `notifications/ahma/client_gone` says that one has left. The program may name a client in the same place of a
    /// `notifications/resources/updated` that is for that client alone.
    pub keeps_clients_apart: bool,
}

/// Any stdio MCP server: one command line for every purpose.
///
/// `{scope}` in an argument becomes the scope directory; `AHMA_SANDBOX_SCOPE` always carries it.
#[derive(Debug, Clone)]
pub struct FixedCommand {
    pub program: OsString,
    pub args: Vec<OsString>,
    /// The directory for a child that has no scope of its own.
    pub default_scope: PathBuf,
}

const SCOPE_PLACEHOLDER: &str = "{scope}";

impl ChildFactory for FixedCommand {
    fn command(&self, spawn: &Spawn) -> ChildCommand {
        let scope: &Path = match spawn {
            Spawn::Scoped(scope) => scope,
            Spawn::Deferred | Spawn::Shared => &self.default_scope,
        };
        ChildCommand {
            program: self.program.clone(),
            args: self.args.iter().map(|arg| fill_in(arg, scope)).collect(),
            env: vec![(ahma_common::contract::SCOPE_VARIABLE.into(), scope.into())],
            keeps_clients_apart: false,
        }
    }
}

fn fill_in(arg: &OsStr, scope: &Path) -> OsString {
    match arg.to_str() {
        Some(SCOPE_PLACEHOLDER) => scope.into(),
        Some(text) if text.contains(SCOPE_PLACEHOLDER) => match scope.to_str() {
            Some(scope) => text.replace(SCOPE_PLACEHOLDER, scope).into(),
            None => arg.to_owned(),
        },
        _ => arg.to_owned(),
    }
}
