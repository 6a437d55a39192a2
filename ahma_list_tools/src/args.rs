//! The command line.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use ahma_common::{contract::CLIENT_TOKEN_FILE_VARIABLE, variables};
use ahma_http_mcp_client::{
    LoginCommand, TokenFile,
    config::{
        self, ConfigProblem, ConfigTrust, HttpEndpoint, ServerConfig, StdioCommand, TransportChoice,
        Variables,
    },
    shown_address,
};
use clap::{
    ArgGroup, CommandFactory as _, FromArgMatches as _, Parser, ValueEnum, error::ErrorKind,
    parser::ValueSource,
};
use http::HeaderValue;
use url::Url;

/// Print the tools of an MCP server.
///
/// Exit codes: 0 listed, 1 the server or a file is at fault, 2 wrong usage, 3 a login is needed, 4 a bug.
#[derive(Debug, Parser)]
#[command(version, about, after_help = EXAMPLES, group(ArgGroup::new("target").required(true).args(["http", "mcp_config", "command"])))]
pub(crate) struct Args {
    /// Address of the server
    #[arg(long, value_name = "URL", value_parser = config::address, env = "AHMA_SERVER_URL")]
    http: Option<Url>,

    /// mcp.json that names the server; requires --server if it names several
    #[arg(long, value_name = "FILE", env = "AHMA_MCP_CONFIG")]
    mcp_config: Option<PathBuf>,

    /// Name of the server in the file
    #[arg(long, value_name = "NAME", requires = "mcp_config", env = "AHMA_SERVER")]
    server: Option<String>,

    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text, env = "AHMA_FORMAT")]
    pub(crate) format: Format,

    /// Which transport to use: auto, http, sse or stdio
    #[arg(long, value_name = "KIND", env = "AHMA_TRANSPORT")]
    transport: Option<TransportChoice>,

    /// Send the value of this environment variable as bearer token
    #[arg(long, value_name = "NAME", env = "AHMA_TOKEN_ENV")]
    token_env: Option<String>,

    /// File that stores logins [default: mcp_http_token.json in the temporary directory]
    #[arg(long, value_name = "FILE", env = CLIENT_TOKEN_FILE_VARIABLE)]
    token_file: Option<PathBuf>,

    /// Give up on a transport after this many seconds
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 30,
        value_parser = clap::value_parser!(u64).range(1..),
        env = "AHMA_CONNECT_TIMEOUT"
    )]
    timeout: u64,

    /// Ask the server that this command starts
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Names, descriptions and parameters for people
    Text,
    /// One JSON object
    Json,
}

const EXAMPLES: &str = "\
Examples:
  ahma_list_tools -- ahma_mcp                               a server that a command starts
  ahma_list_tools --http https://mcp.example.com/mcp        a server on the network
  ahma_list_tools --mcp-config mcp.json --server jira       a server of an mcp.json
  ahma_list_tools --format json -- ahma_mcp                 for a program";

/// A mistake of the user, with its remedy.
#[derive(Debug)]
pub(crate) struct UserError {
    pub(crate) message: String,
    pub(crate) hint: String,
}

fn error(message: impl Into<String>, hint: impl Into<String>) -> UserError {
    UserError {
        message: message.into(),
        hint: hint.into(),
    }
}

impl Args {
    /// A server that the command line names wins over one of a variable.
    pub(crate) fn read() -> Self {
        let command = || variables::with_regular_names(Self::command());
        let only_named = command()
            .mut_arg("http", |arg| arg.env(None))
            .mut_arg("mcp_config", |arg| arg.env(None))
            .try_get_matches();
        // Without one, or with another mistake, everything counts.
        let matches = only_named.unwrap_or_else(|_| command().get_matches());
        let args = Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
        let names_server = matches.value_source("server") == Some(ValueSource::CommandLine);
        // clap lets a requirement go where another flag excludes what is required.
        if names_server && args.mcp_config.is_none() {
            let what = "--server names a server of a file, and needs --mcp-config";
            Self::command().error(ErrorKind::ArgumentConflict, what).exit();
        }
        args
    }

    pub(crate) fn tokens(&self) -> TokenFile {
        self.token_file
            .as_ref()
            .map_or_else(TokenFile::in_temp_dir, TokenFile::at)
    }

    /// The hint for a server that rejects the token.
    pub(crate) fn token_hint(&self) -> Option<String> {
        let name = self.token_env.as_ref()?;
        Some(format!(
            "is the token in the environment variable `{name}` right?"
        ))
    }

    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }

    /// The command that logs in to a server.
    pub(crate) fn login_command(&self) -> LoginCommand {
        let flags = [
            ("--mcp-config", &self.mcp_config),
            ("--token-file", &self.token_file),
        ];
        let given = flags
            .into_iter()
            .filter_map(|(flag, path)| Some((flag, path.as_ref()?)));
        given.fold(LoginCommand::default(), |command, (flag, path)| {
            // As it is seen from everywhere.
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            command.with(flag, &path.display().to_string())
        })
    }

    pub(crate) async fn server_config(&self) -> Result<ServerConfig, UserError> {
        let mut config = match (&self.http, &self.mcp_config) {
            (Some(url), _) => at_address(url)?,
            (None, Some(_)) => self.file_server().await?,
            (None, None) => self.command_server()?,
        };
        if let Some(transport) = self.transport {
            config.transport = transport;
        }
        if let Some(name) = &self.token_env {
            let endpoint = config.http.as_mut();
            let endpoint = endpoint.ok_or_else(|| {
                error(
                    "--token-env is for HTTP servers",
                    "pass a token in the command's environment",
                )
            })?;
            endpoint
                .headers
                .retain(|(name, _)| *name != http::header::AUTHORIZATION);
            endpoint
                .headers
                .push((http::header::AUTHORIZATION, bearer(name)?));
        }
        Ok(config)
    }

    async fn file_server(&self) -> Result<ServerConfig, UserError> {
        let file = self.mcp_config.as_deref().unwrap_or(Path::new("mcp.json"));
        if !file.exists() {
            return Err(error(
                format!("{} does not exist", file.display()),
                "give an mcp.json with --mcp-config, an address with --http, or a program after `--`",
            ));
        }
        let mut loaded = config::load(file, ConfigTrust::Named, &Variables::of_this_process(None)).await;
        let names: Vec<String> = loaded.servers.iter().map(|server| server.name.clone()).collect();
        let wanted = match (&self.server, names.as_slice()) {
            (Some(name), _) | (None, [name]) => name,
            (None, _) => {
                let message = match problems(&loaded.problems, |_| true) {
                    None => format!("{} names {} servers", file.display(), names.len()),
                    Some(problems) => problems,
                };
                let hint = match names.is_empty() {
                    true => "give an mcp.json that names a server under `servers` or `mcpServers`".to_owned(),
                    false => format!("choose one with --server: {}", names.join(", ")),
                };
                return Err(error(message, hint));
            }
        };
        if let Some(index) = loaded.servers.iter().position(|server| server.name == *wanted) {
            return Ok(loaded.servers.swap_remove(index));
        }
        // The entry may be there and be wrong.
        if let Some(problems) = problems(&loaded.problems, |problem| problem.is_about(wanted)) {
            return Err(error(problems, "correct the file"));
        }
        let hint = match names.is_empty() {
            true => "it names no server at all".to_owned(),
            false => format!("its servers are: {}", names.join(", ")),
        };
        Err(error(
            format!("{} has no server `{wanted}`", file.display()),
            hint,
        ))
    }

    fn command_server(&self) -> Result<ServerConfig, UserError> {
        let Some((program, args)) = self.command.split_first() else {
            return Err(error("no command after --", "write `-- COMMAND ARGS`"));
        };
        Ok(ServerConfig {
            name: program.clone(),
            transport: TransportChoice::Stdio,
            http: None,
            stdio: Some(StdioCommand {
                program: program.clone(),
                args: args.to_vec(),
                // The user typed the command into a shell: it gets the environment of that shell.
                env: std::env::vars_os()
                    .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
                    .collect(),
                working_directory: None,
            }),
        })
    }
}

/// The problems that concern the request, on one line; none if there are none.
fn problems(all: &[ConfigProblem], concerns: impl Fn(&ConfigProblem) -> bool) -> Option<String> {
    let chosen = all.iter().filter(|problem| concerns(problem));
    let chosen: Vec<String> = chosen.map(ToString::to_string).collect();
    (!chosen.is_empty()).then(|| chosen.join("; "))
}

fn at_address(url: &Url) -> Result<ServerConfig, UserError> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(error(
            format!("{url} is not an http or https address"),
            "write --http https://…",
        ));
    }
    Ok(ServerConfig {
        name: shown_address(url),
        transport: TransportChoice::Auto,
        http: Some(HttpEndpoint::new(url.clone())),
        stdio: None,
    })
}

fn bearer(name: &str) -> Result<HeaderValue, UserError> {
    let token = std::env::var(name).map_err(|_| {
        error(
            format!("environment variable `{name}` is not set"),
            "export it, or name another",
        )
    })?;
    let mut value = HeaderValue::from_str(&format!("Bearer {}", token.trim())).map_err(|_| {
        error(
            format!("environment variable `{name}` is not a token"),
            "it must be one line of text",
        )
    })?;
    value.set_sensitive(true);
    Ok(value)
}
