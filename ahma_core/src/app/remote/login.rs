//! `ahma_mcp login` and `logout`: the part of OAuth that needs a person.

use std::path::PathBuf;

use ahma_common::words::visible;
use ahma_http_mcp_client::{
    Browser, LoginError, LoginMode, LoginOptions, TokenFile, TokenFileError, config::HttpEndpoint,
};
use url::Url;

use super::{
    args::{AccountArgs, LoginArgs, SourceArgs},
    say::tell,
    source::{ConfigFile, client_settings},
};
use crate::app::{
    args::Args,
    exit::{Failure, chain},
    run::runtime,
    settings::Environment,
};

pub(crate) fn login(login: &LoginArgs, args: Args) -> Result<(), Failure> {
    let browser = match login.no_browser || args.remote.no_browser {
        true => Browser::Leave,
        false => Browser::Open,
    };
    let account = Account::new(&login.account, args)?;
    runtime()?.block_on(account.log_in(browser))
}

pub(crate) fn logout(login: &AccountArgs, args: Args) -> Result<(), Failure> {
    let account = Account::new(login, args)?;
    runtime()?.block_on(account.log_out())
}

/// One server, and where its login is kept.
#[derive(Debug)]
struct Account {
    /// The server as the user wrote it.
    server: String,
    address: Address,
    tokens: TokenFile,
}

#[derive(Debug)]
enum Address {
    Given(Url),
    /// The file, and the value of `${workspaceFolder}`.
    InFile(ConfigFile, PathBuf),
}

impl Account {
    fn new(login: &AccountArgs, args: Args) -> Result<Self, Failure> {
        let scope = args.sandbox_scope;
        let source: SourceArgs = login.source.clone().or(args.remote.source);
        let server = login.server.clone();
        let url = Url::parse(&server).ok();
        let address = match url.filter(|url| matches!(url.scheme(), "http" | "https")) {
            Some(url) => Address::Given(url),
            None => {
                let directory = Environment::read()?.working_directory;
                let scope = directory.join(scope.unwrap_or_default());
                let scope = scope.canonicalize().unwrap_or(scope);
                let file = ConfigFile::choose(source.mcp_config.as_deref(), &directory, &scope)?;
                let file = file.ok_or_else(|| {
                    Failure::user(format!("no file names a server `{server}`")).with_hint(
                        "give the file with --mcp-config, or the whole address of the server, with https:// in front",
                    )
                })?;
                Address::InFile(file, scope)
            }
        };
        Ok(Self {
            server,
            address,
            tokens: client_settings(&source, 0, LoginMode::Never).tokens,
        })
    }

    async fn log_in(&self, browser: Browser) -> Result<(), Failure> {
        let endpoint = self.endpoint().await?;
        let server = &self.server;
        if endpoint.has_own_credentials() {
            return Err(Failure::user(format!(
                "server `{server}` uses the configured `Authorization` header"
            ))
            .with_hint("no login is required; correct the header if the server rejects it"));
        }
        if let Some(file) = &endpoint.found_in {
            tell(&format!(
                "{} was discovered, not named: this login is valid for that file alone",
                file.display()
            ));
        }
        let options = LoginOptions {
            browser,
            ..LoginOptions::default()
        };
        let show_link = |link: &Url| tell(&format!("to log in, open {link}"));
        ahma_http_mcp_client::login(&endpoint, &self.tokens, &options, show_link)
            .await
            .map_err(|error| not_logged_in(&error))?;
        tell(&format!("logged in to {server}"));
        Ok(())
    }

    async fn log_out(&self) -> Result<(), Failure> {
        let endpoint = self.endpoint().await?;
        let was_there = ahma_http_mcp_client::logout(&endpoint, &self.tokens)
            .await
            .map_err(|error| bad_tokens(&error))?;
        let server = &self.server;
        tell(&if was_there {
            format!("the login to {server} was deleted here; the server itself was not informed")
        } else {
            format!("there was no login to {server}")
        });
        Ok(())
    }

    /// The address as it was given, or that of a server of the file.
    async fn endpoint(&self) -> Result<HttpEndpoint, Failure> {
        let (file, scope) = match &self.address {
            Address::Given(url) => return Ok(HttpEndpoint::new(url.clone())),
            Address::InFile(file, scope) => (file, scope),
        };
        let wanted = self.server.as_str();
        let loaded = file.load(scope).await;
        if let Some(server) = loaded.servers.iter().find(|server| server.name == wanted) {
            return server.http.clone().ok_or_else(|| {
                Failure::user(format!("server `{wanted}` is a program"))
                    .with_hint("only servers with a `url` have logins")
            });
        }
        // The entry may exist and have a mistake.
        let problems: Vec<String> = (loaded.problems.iter())
            .filter(|problem| problem.is_about(wanted))
            .map(|problem| visible(&problem.to_string()))
            .collect();
        Err(match problems.as_slice() {
            [] => {
                let names: Vec<&str> = loaded.servers.iter().map(|server| server.name.as_str()).collect();
                Failure::user(format!("{} has no server `{wanted}`", file.path.display())).with_hint(
                    if names.is_empty() {
                        "it names no other server; give an address, or a file with --mcp-config".to_owned()
                    } else {
                        format!("its servers are: {}", visible(&names.join(", ")))
                    },
                )
            }
            problems => Failure::user(problems.join("; ")).with_hint("correct the file"),
        })
    }
}

fn not_logged_in(error: &LoginError) -> Failure {
    let hint = match error {
        LoginError::Insecure { .. } => "use the https address",
        LoginError::CallbackPort { .. } => {
            "a running server may be waiting there for this login: open the link it shows, or free the port"
        }
        LoginError::Prepare { .. } => "is the address right, and does this server support logins?",
        LoginError::TimedOut { .. } | LoginError::Refused { .. } => "start the login again",
        LoginError::Callback { .. } | LoginError::Listener { .. } => {
            "start the login again; nothing was stored"
        }
        LoginError::Tokens(_) => "choose another file with --token-file",
    };
    Failure::user(visible(&chain(error))).with_hint(hint)
}

fn bad_tokens(error: &TokenFileError) -> Failure {
    Failure::user(chain(error)).with_hint("choose another file with --token-file")
}
