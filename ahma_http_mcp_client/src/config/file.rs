//! Reads `mcp.json`: `servers` (VS Code) or `mcpServers` (most other clients), comments allowed.
//!
//! Every problem of a file is collected, with the field at fault; a bad entry never hides a good one.
//! A file that was discovered in a workspace is data of that workspace: it may name addresses, but it may
//! not start programs or read the environment (see [`ConfigTrust`]).

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use http::{HeaderName, HeaderValue};
use serde_json::{Map, Value};
use url::Url;

use super::{
    HttpEndpoint, OAuthIdentity, Secret, ServerConfig, StdioCommand, TransportChoice, Variables,
    mistakes::{self, nearest},
};

/// Origin of a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigTrust {
    /// The user named it (`--mcp-config FILE`).
    Named,
    /// It was discovered in the workspace, and may come from others.
    Found,
}

/// Fields of an entry.
const FIELDS: [&str; 17] = [
    "type",
    "url",
    "headers",
    "command",
    "args",
    "env",
    "cwd",
    "disabled",
    "enabled",
    "client_id",
    "client_secret",
    "client_metadata_url",
    "scope",
    "callback_port",
    "transport",
    "atlassian_client_id",
    "atlassian_client_secret",
];

/// The servers of a file, and all problems of that file.
#[derive(Debug, Default)]
pub struct McpConfig {
    pub servers: Vec<ServerConfig>,
    pub problems: Vec<ConfigProblem>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {field}: {message}", file.display())]
pub struct ConfigProblem {
    pub file: PathBuf,
    /// The server it is about; none if it is about all of them.
    pub server: Option<String>,
    /// A path such as `servers.jira.headers.X-Key`; `file` when the whole file is at fault.
    pub field: String,
    pub message: String,
}

impl ConfigProblem {
    /// True if this may be the reason that `server` is missing.
    pub fn is_about(&self, server: &str) -> bool {
        self.server.as_deref().is_none_or(|name| name == server)
    }
}

/// Reads one file.
pub async fn load(path: &Path, trust: ConfigTrust, variables: &Variables) -> McpConfig {
    match tokio::fs::read_to_string(path).await {
        Ok(text) => parse(path, &text, trust, variables),
        Err(error) => McpConfig {
            servers: Vec::new(),
            problems: vec![ConfigProblem {
                file: path.to_owned(),
                server: None,
                field: "file".to_owned(),
                message: format!("cannot be read: {error}"),
            }],
        },
    }
}

pub(super) fn parse(path: &Path, text: &str, trust: ConfigTrust, variables: &Variables) -> McpConfig {
    let mut reader = Reader {
        file: path,
        trust,
        variables,
        config: McpConfig::default(),
        field: Vec::new(),
    };
    reader.document(text);
    reader.config
}

/// Walks the document and tracks the current field, so that a problem can name it.
struct Reader<'a> {
    file: &'a Path,
    trust: ConfigTrust,
    variables: &'a Variables,
    config: McpConfig,
    field: Vec<String>,
}

impl Reader<'_> {
    fn document(&mut self, text: &str) {
        let value: Value = match jsonc_parser::parse_to_serde_value(text, &Default::default()) {
            Ok(value) => value,
            Err(error) => return self.problem(format!("is not JSON: {error}")),
        };
        self.duplicate_keys(text);
        let Value::Object(mut document) = value else {
            return self.problem("must be an object with `servers` or `mcpServers`");
        };
        let sections = ["servers", "mcpServers"].map(|key| (key, document.remove(key)));
        if sections.iter().all(|(_, section)| section.is_none()) {
            return self.problem("has neither `servers` nor `mcpServers`");
        }
        for (key, section) in sections {
            match section {
                None => {}
                Some(Value::Object(entries)) => self.within(key, |reader| {
                    for (name, entry) in BTreeMap::from_iter(entries) {
                        reader.within(&name.clone(), |reader| reader.server(name, entry));
                    }
                }),
                Some(_) => self.problem_in(key, "must be an object of servers"),
            }
        }
    }

    fn server(&mut self, name: String, entry: Value) {
        let Value::Object(mut entry) = entry else {
            return self.problem("must be an object with `url` or `command`");
        };
        if name.trim().is_empty() {
            return self.problem("the server has no name");
        }
        let disabled = self.switch(&mut entry, "disabled");
        let enabled = self.switch(&mut entry, "enabled");
        let (Ok(disabled), Ok(enabled)) = (disabled, enabled) else {
            return;
        };
        if disabled == Some(true) || enabled == Some(false) {
            return;
        }
        if self.config.servers.iter().any(|server| server.name == name) {
            return self.problem("is defined twice");
        }
        if is_this_program(&entry) {
            tracing::debug!(server = name, "not mounting ourselves");
            return;
        }
        let problems_before = self.config.problems.len();
        let transport = self.transport(&mut entry);
        let stdio = self.stdio(&mut entry);
        let http = self.http(&mut entry);
        match (&http, &stdio, transport) {
            _ if self.config.problems.len() > problems_before => {}
            (None, None, _) => self.problem("has neither `url` nor `command`"),
            (None, _, TransportChoice::Http | TransportChoice::Sse) => self.problem("has no `url`"),
            (_, None, TransportChoice::Stdio) => self.problem("has no `command`"),
            _ => self.config.servers.push(ServerConfig {
                name,
                transport,
                http,
                stdio,
            }),
        }
        // Fields that were not read because of another problem are known nevertheless.
        for unknown in entry.keys().filter(|key| !FIELDS.contains(&key.as_str())) {
            if let Some(known) = nearest(unknown, &FIELDS) {
                self.problem_in(unknown, format!("is unknown; did you mean `{known}`?"));
            }
        }
    }

    /// The last value counts, which is hardly what was meant.
    fn duplicate_keys(&mut self, text: &str) {
        let parsed = jsonc_parser::parse_to_ast(text, &Default::default(), &Default::default());
        let Some(document) = parsed.ok().and_then(|parsed| parsed.value) else {
            return;
        };
        let mut report = |path: &[String]| {
            self.field = path.to_vec();
            self.problem("is set twice; the last value is used");
        };
        mistakes::duplicate_keys(&document, &mut Vec::new(), &mut report);
        self.field.clear();
    }

    /// `Err` if it is not a boolean, which is reported.
    fn switch(&mut self, entry: &mut Map<String, Value>, key: &str) -> Result<Option<bool>, ()> {
        match entry.remove(key) {
            None => Ok(None),
            Some(Value::Bool(on)) => Ok(Some(on)),
            Some(_) => {
                self.problem_in(key, "must be true or false");
                Err(())
            }
        }
    }

    fn transport(&mut self, entry: &mut Map<String, Value>) -> TransportChoice {
        let text = self
            .string(entry, "type")
            .or_else(|| self.string(entry, "transport"));
        match text.as_deref().map(str::parse) {
            None => TransportChoice::Auto,
            Some(Ok(choice)) => choice,
            Some(Err(message)) => {
                self.problem_in("type", message);
                TransportChoice::Auto
            }
        }
    }

    fn http(&mut self, entry: &mut Map<String, Value>) -> Option<HttpEndpoint> {
        let url = self.string(entry, "url")?;
        let url = match Url::parse(&url) {
            Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => url,
            Ok(_) => {
                self.problem_in("url", "must be an http or https address");
                return None;
            }
            Err(error) => {
                self.problem_in("url", format!("is not an address: {error}"));
                return None;
            }
        };
        let headers = self.headers(entry);
        let oauth = self.oauth(entry);
        let found_in = (self.trust == ConfigTrust::Found).then(|| self.file.to_owned());
        Some(HttpEndpoint {
            url,
            headers,
            oauth,
            found_in,
        })
    }

    fn headers(&mut self, entry: &mut Map<String, Value>) -> Vec<(HeaderName, HeaderValue)> {
        let mut headers = Vec::new();
        for (name, text) in self.string_map(entry, "headers") {
            let parsed = HeaderName::try_from(name.as_str())
                .ok()
                .zip(HeaderValue::from_str(&text).ok());
            match parsed {
                Some((name, mut value)) => {
                    value.set_sensitive(true);
                    headers.push((name, value));
                }
                None => self.within("headers", |reader| {
                    reader.problem_in(&name, "is not a valid HTTP header");
                }),
            }
        }
        headers
    }

    fn oauth(&mut self, entry: &mut Map<String, Value>) -> OAuthIdentity {
        let mut either = |reader: &mut Self, names: [&str; 2]| {
            let [first, second] = names.map(|name| reader.string(entry, name));
            first.or(second)
        };
        let client_id = either(self, ["client_id", "atlassian_client_id"]);
        let client_secret = either(self, ["client_secret", "atlassian_client_secret"]).map(Secret::new);
        if client_secret.is_some() && client_id.is_none() {
            self.problem_in("client_secret", "requires a `client_id`");
        }
        let client_metadata_url = self.string(entry, "client_metadata_url");
        let scopes = self.string(entry, "scope").unwrap_or_default();
        let callback_port = entry.remove("callback_port").and_then(|value| {
            let port = value
                .as_u64()
                .and_then(|port| u16::try_from(port).ok())
                .filter(|port| *port != 0);
            if port.is_none() {
                self.problem_in("callback_port", "must be a port number");
            }
            port
        });
        OAuthIdentity {
            client_id,
            client_secret,
            client_metadata_url,
            scopes: scopes.split_whitespace().map(str::to_owned).collect(),
            callback_port,
        }
    }

    fn stdio(&mut self, entry: &mut Map<String, Value>) -> Option<StdioCommand> {
        if entry.contains_key("command") && self.trust == ConfigTrust::Found {
            self.problem_in(
                "command",
                "would start a program, but the file was discovered, not named; use `--mcp-config FILE` to allow it",
            );
            return None;
        }
        let program = self.string(entry, "command")?;
        let args = self.strings(entry, "args");
        let env = self.string_map(entry, "env").into_iter().collect();
        let working_directory = self.string(entry, "cwd").map(PathBuf::from);
        Some(StdioCommand {
            program,
            args,
            env,
            working_directory,
        })
    }

    fn string(&mut self, entry: &mut Map<String, Value>, key: &str) -> Option<String> {
        match entry.remove(key)? {
            Value::String(text) => self.within(key, |reader| reader.expand(&text)),
            _ => {
                self.problem_in(key, "must be a string");
                None
            }
        }
    }

    fn strings(&mut self, entry: &mut Map<String, Value>, key: &str) -> Vec<String> {
        let items = match entry.remove(key) {
            None => return Vec::new(),
            Some(Value::Array(items)) => items,
            Some(_) => {
                self.problem_in(key, "must be a list of strings");
                return Vec::new();
            }
        };
        let mut strings = Vec::new();
        for (index, item) in items.into_iter().enumerate() {
            self.within(key, |reader| {
                reader.within(&index.to_string(), |reader| match item {
                    Value::String(text) => strings.extend(reader.expand(&text)),
                    _ => reader.problem("must be a string"),
                });
            });
        }
        strings
    }

    fn string_map(&mut self, entry: &mut Map<String, Value>, key: &str) -> BTreeMap<String, String> {
        let mut map = match entry.remove(key) {
            None => return BTreeMap::new(),
            Some(Value::Object(map)) => map,
            Some(_) => {
                self.problem_in(key, "must be an object of strings");
                return BTreeMap::new();
            }
        };
        let mut names: Vec<String> = map.keys().cloned().collect();
        names.sort();
        let pairs = names.into_iter().filter_map(|name| {
            let value = self.within(key, |reader| reader.string(&mut map, &name))?;
            Some((name, value))
        });
        pairs.collect()
    }

    fn expand(&mut self, text: &str) -> Option<String> {
        match self.variables.expand(text, self.trust) {
            Ok(text) => Some(text),
            Err(message) => {
                self.problem(message);
                None
            }
        }
    }

    fn within<T>(&mut self, field: &str, walk: impl FnOnce(&mut Self) -> T) -> T {
        self.field.push(field.to_owned());
        let value = walk(self);
        self.field.pop();
        value
    }

    /// A problem of one field below the current one.
    fn problem_in(&mut self, field: &str, message: impl Into<String>) {
        self.within(field, |reader| reader.problem(message));
    }

    fn problem(&mut self, message: impl Into<String>) {
        let field = if self.field.is_empty() {
            "file".to_owned()
        } else {
            self.field.join(".")
        };
        self.config.problems.push(ConfigProblem {
            file: self.file.to_owned(),
            // Below `servers`.
            server: self.field.get(1).cloned(),
            field,
            message: message.into(),
        });
    }
}

/// An editor's `mcp.json` lists this very server; mounting it would start it again, endlessly.
fn is_this_program(entry: &Map<String, Value>) -> bool {
    let program = entry.get("command").and_then(Value::as_str).map(Path::new);
    let stem = program.and_then(Path::file_stem);
    stem.is_some_and(|stem| stem == "ahma_mcp") && !entry.contains_key("url")
}
