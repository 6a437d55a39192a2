//! A user's directories, for one test.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;
use tempfile::TempDir;

/// An empty project, an empty home directory and one for temporary files; removed with the value.
#[derive(Debug)]
pub struct Workspace {
    directory: TempDir,
}

impl Default for Workspace {
    fn default() -> Self {
        Self::new()
    }
}

impl Workspace {
    #[track_caller]
    pub fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let workspace = Self { directory };
        for path in [workspace.scope(), workspace.home(), workspace.temp()] {
            fs::create_dir_all(path).expect("writable");
        }
        workspace
    }

    /// The project: where the server runs and what commands may change. Canonical.
    pub fn scope(&self) -> PathBuf {
        self.root().join("project")
    }

    pub fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    /// For `TMPDIR`, where a test must not see what others leave in the usual one.
    pub fn temp(&self) -> PathBuf {
        self.root().join("temp")
    }

    pub fn tools(&self) -> PathBuf {
        self.scope().join(".ahma/tools")
    }

    /// Writes a tool file; the directory is made if need be.
    #[track_caller]
    pub fn write_tool(&self, file: &str, tool: &Value) {
        fs::create_dir_all(self.tools()).expect("writable");
        fs::write(self.tools().join(file), tool.to_string()).expect("writable");
    }

    fn root(&self) -> PathBuf {
        Path::canonicalize(self.directory.path()).expect("it exists")
    }
}
