//! `ahma_mcp token` and `ahma_mcp audit`: credentials of HTTP clients, and the audit trail.

use std::{
    fs,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use ahma_common::words::counted;
use ahma_http_bridge::{
    AuditError, Role, TokenError, TokenParams, issue_token, list_tokens, revoke_token, verify_audit,
};

use super::{
    exit::{Exit, Failure, chain, notice, print},
    settings::Environment,
    subcommands::{AuditCommand, RoleArg, TokenCommand},
};

pub(super) fn token(command: TokenCommand, tokens_file: Option<PathBuf>) -> Result<(), Failure> {
    let file_or_default = |file: Option<PathBuf>| file.or(tokens_file).map_or_else(default_tokens_file, Ok);
    match command {
        TokenCommand::List { file } => list(&file_or_default(file)?),
        TokenCommand::Revoke {
            name,
            stop_work: true,
            options,
            ..
        } => {
            super::admin::revoke_and_stop_work(&name, &options)?;
            notice(format_args!(
                "the token of {name} is revoked, and its work is stopped"
            ));
            Ok(())
        }
        TokenCommand::Revoke { name, file, .. } => revoke(&name, &file_or_default(file)?),
        TokenCommand::New {
            name,
            role,
            expires,
            scope,
            max_sessions,
            tools,
            file,
        } => {
            let params = TokenParams {
                name,
                role: match role {
                    RoleArg::Agent => Role::Agent,
                    RoleArg::Operator => Role::Operator,
                    RoleArg::Metrics => Role::Metrics,
                },
                lifetime: expires,
                scope,
                max_sessions,
                tools,
            };
            new(params, &file_or_default(file)?)
        }
    }
}

fn list(file: &Path) -> Result<(), Failure> {
    let mut text = String::new();
    for token in list_tokens(file)? {
        let role = serde_json::to_value(token.role).unwrap_or_default();
        let role = role.as_str().unwrap_or_default();
        let expires = token.expires.as_deref().unwrap_or("never");
        text.push_str(&format!("{}: {role}, expires {expires}", token.name));
        if let Some(scope) = token.scope {
            text.push_str(&format!(", confined to {}", scope.display()));
        }
        if let Some(tools) = token.tools {
            text.push_str(&format!(", tools {tools}"));
        }
        text.push('\n');
    }
    print(text)
}

fn revoke(name: &str, file: &Path) -> Result<(), Failure> {
    if !revoke_token(file, name)? {
        return Err(
            Failure::user(format!("{} has no token called {name}", file.display()))
                .with_hint("ahma_mcp token list names those it has"),
        );
    }
    notice(format_args!(
        "the token of {name} is revoked; running servers refuse it from now on"
    ));
    Ok(())
}

impl From<TokenError> for Failure {
    fn from(error: TokenError) -> Self {
        let hint = match error {
            TokenError::Lifetime => return Self::new(Exit::Usage, chain(&error)),
            TokenError::File { .. } => "give a file that you can read and write with --file",
            TokenError::Form { .. } => {
                "correct it, or give another file with --file: ahma_mcp token new writes a well-formed one"
            }
            TokenError::Entry { .. } => "ahma_mcp token new --help describes each value",
        };
        Self::user(chain(&error)).with_hint(hint)
    }
}

/// Prints nothing but the token to stdout, so that it can be piped.
fn new(params: TokenParams, file: &Path) -> Result<(), Failure> {
    let scope = params
        .scope
        .map(|scope| {
            scope.canonicalize().map_err(|error| {
                Failure::user(format!("--scope {} cannot be used: {error}", scope.display()))
                    .with_hint("give an existing directory")
            })
        })
        .transpose()?;
    let name = params.name.clone();
    let issued = issue_token(file, TokenParams { scope, ..params })?;
    if issued.replaced {
        notice(format_args!("the previous token of {name} is revoked"));
    }
    let isolation = if issued.needs_isolation {
        " --session-isolation"
    } else {
        ""
    };
    let file = file.display();
    notice(format_args!(
        "the token of {name} is shown only once; its hash is in {file}\n\
         serve with: ahma_mcp --mode http{isolation} --auth token --tokens-file {file}"
    ));
    print(format!("{}\n", issued.token.expose()))
}

/// Also creates the directory of the file.
fn default_tokens_file() -> Result<PathBuf, Failure> {
    let environment = Environment::read()?;
    let config_home = environment
        .config_home
        .or_else(|| Some(environment.home?.join(".config")))
        .ok_or_else(|| {
            Failure::user("no home directory for the tokens file").with_hint("name one with --file")
        })?;
    let directory = config_home.join("ahma_mcp");
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&directory)
        .map_err(|error| {
            Failure::user(format!("{} cannot be created: {error}", directory.display()))
                .with_hint("give a file that you can write to with --file")
        })?;
    Ok(directory.join("tokens.json"))
}

pub(super) fn audit(command: AuditCommand) -> Result<(), Failure> {
    let AuditCommand::Verify { file } = command;
    let shown = file.display();
    let error = match verify_audit(&file) {
        Ok(lines) => return print(format!("{shown}: {}, chain intact\n", counted(lines, "line"))),
        Err(AuditError::Io(error)) => {
            return Err(Failure::user(format!("{shown} cannot be read: {error}"))
                .with_hint("give a file that --audit-file wrote"));
        }
        Err(error) => error,
    };
    let hint = match error.intact_lines() {
        0 => "no line of this file can be trusted".to_owned(),
        1 => "only line 1 is intact, as far as the chain can tell".to_owned(),
        intact => format!("lines 1 to {intact} are intact, as far as the chain can tell"),
    };
    Err(Failure::user(format!("{shown}: {}", chain(&error))).with_hint(hint))
}
