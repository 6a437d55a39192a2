//! `${env:NAME}` and the like inside the strings of an `mcp.json`.
//!
//! The environment is handed in, so that the caller decides which file may see it at all.

use std::{collections::HashMap, path::PathBuf};

/// Values for `${…}`.
#[derive(Debug, Clone, Default)]
pub struct Variables {
    env: HashMap<String, String>,
    workspace_folder: Option<PathBuf>,
}

impl Variables {
    pub fn new(env: impl IntoIterator<Item = (String, String)>, workspace_folder: Option<PathBuf>) -> Self {
        Self {
            env: env.into_iter().collect(),
            workspace_folder,
        }
    }

    /// The environment of this process; names and values that are not UTF-8 are left out.
    pub fn of_this_process(workspace_folder: Option<PathBuf>) -> Self {
        let env =
            std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)));
        Self::new(env, workspace_folder)
    }

    /// Replaces every `${…}` in `text`, or says which one cannot be replaced and what to do.
    pub(super) fn expand(&self, text: &str, trust: super::ConfigTrust) -> Result<String, String> {
        let mut expanded = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            expanded.push_str(&rest[..start]);
            let Some(length) = rest[start..].find('}') else {
                return Err(format!("`{}` has no closing `}}`", &rest[start..]));
            };
            expanded.push_str(&self.value_of(&rest[start + 2..start + length], trust)?);
            rest = &rest[start + length + 1..];
        }
        expanded.push_str(rest);
        Ok(expanded)
    }

    fn value_of(&self, variable: &str, trust: super::ConfigTrust) -> Result<String, String> {
        if let Some(id) = variable.strip_prefix("input:") {
            return Err(format!(
                "`${{input:{id}}}` prompts for a value in an editor, which this program cannot do; \
                 put the value in an environment variable and write `${{env:NAME}}`"
            ));
        }
        if variable == "workspaceFolder" {
            let folder = self
                .workspace_folder
                .as_ref()
                .map(|folder| folder.display().to_string());
            return folder.ok_or_else(|| "`${workspaceFolder}` is not known here; write the path".to_owned());
        }
        // `${NAME}` and `${NAME:-default}` are what `.mcp.json` files of other clients use.
        let (name, default) = match variable.strip_prefix("env:") {
            Some(name) => (name, None),
            None => match variable.split_once(":-") {
                Some((name, default)) => (name, Some(default)),
                None => (variable, None),
            },
        };
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(format!(
                "`${{{variable}}}` is not supported; use `${{env:NAME}}` or `${{workspaceFolder}}`"
            ));
        }
        if trust == super::ConfigTrust::Found {
            return Err(format!(
                "`${{{variable}}}` would send an environment variable to an address of this file, but the file was \
                 discovered, not named; use `--mcp-config FILE` to allow it"
            ));
        }
        match (self.env.get(name), default) {
            (Some(value), _) => Ok(value.clone()),
            (None, Some(default)) => Ok(default.to_owned()),
            (None, None) => Err(format!("environment variable `{name}` is not set")),
        }
    }
}
