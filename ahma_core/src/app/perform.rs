//! From a subcommand to its exit code.

use std::process::ExitCode;

use super::{
    args::Args,
    doctor,
    exit::{Exit, Failure, print},
    init, man, run_tool,
    settings::{Settings, Surroundings},
    tasks::Task,
};

pub(super) fn perform(task: Task, args: Args) -> Result<ExitCode, Failure> {
    match task {
        Task::Init(wishes) => {
            let around = Surroundings::read()?;
            let flags = args.given.clone();
            let settings = Settings::resolve(args, &around)?.of_the_project();
            init::run(&wishes, &settings, &flags, &around)
        }
        Task::Doctor(wishes) => doctor::run(&wishes, args),
        Task::Run(wishes) => run_tool::run(wishes, Settings::resolve(args, &Surroundings::read()?)?),
        #[cfg(feature = "bridge")]
        Task::Token(task) => credentials::token(task, args.http.tokens_file),
        #[cfg(feature = "bridge")]
        Task::Audit(task) => credentials::audit(task),
        #[cfg(feature = "client")]
        Task::Login(wishes) => super::remote::login(&wishes, args),
        #[cfg(feature = "client")]
        Task::Logout(wishes) => super::remote::logout(&wishes, args),
        Task::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Args::completed(), "ahma_mcp", &mut script);
            print(script)?;
            Ok(Exit::Success.into())
        }
        Task::Man => {
            let page = man::page()
                .map_err(|error| Failure::internal("the manual page cannot be written", &error))?;
            print(page)?;
            Ok(Exit::Success.into())
        }
    }
}

#[cfg(feature = "bridge")]
mod credentials {
    use std::{fs, io::Write as _, os::unix::fs::DirBuilderExt as _, path::PathBuf, process::ExitCode};

    use ahma_flags::words::counted;
    use ahma_http_bridge::{AuditError, TokenError, TokenParams, issue_token, verify_audit};

    use super::{Exit, Failure, Surroundings, print};
    use crate::app::{
        exit::chain,
        tasks::{AuditTask, TokenTask},
    };

    /// The token is the only thing on stdout, so that it can be piped to where it belongs.
    pub(super) fn token(task: TokenTask, tokens_file: Option<PathBuf>) -> Result<ExitCode, Failure> {
        let TokenTask::New {
            name,
            expires,
            scope,
            max_sessions,
            file,
        } = task;
        let file = match file.or(tokens_file) {
            Some(file) => file,
            None => default_tokens_file()?,
        };
        let scope = scope
            .map(|scope| {
                scope.canonicalize().map_err(|error| {
                    Failure::user(format!("--scope {} cannot be used: {error}", scope.display()))
                        .with_hint("give an existing directory")
                })
            })
            .transpose()?;
        let params = TokenParams {
            name: name.clone(),
            lifetime: expires,
            scope,
            max_sessions,
        };
        let issued = issue_token(&file, params).map_err(|error| {
            let hint = match error {
                TokenError::Lifetime => return Failure::new(Exit::Usage, chain(&error)),
                TokenError::File { .. } => "give a file that you can write to with --file",
                TokenError::Form { .. } => {
                    "correct it, or give another file with --file: ahma_mcp token new makes one in its right form"
                }
                TokenError::Entry { .. } => "ahma_mcp token new --help describes each value",
            };
            Failure::user(chain(&error)).with_hint(hint)
        })?;
        let mut stderr = std::io::stderr().lock();
        if issued.replaced {
            let _ = writeln!(
                stderr,
                "the token that {name} had is replaced and opens nothing any more"
            );
        }
        let isolation = if issued.needs_isolation {
            " --session-isolation"
        } else {
            ""
        };
        let _ = writeln!(
            stderr,
            "the token of {name} is shown this once; its hash is in {0}\n\
             serve with: ahma_mcp --mode http{isolation} --auth token --tokens-file {0}",
            file.display()
        );
        print(format!("{}\n", issued.token.expose()))?;
        Ok(Exit::Success.into())
    }

    /// Makes the directory of the file, too.
    fn default_tokens_file() -> Result<PathBuf, Failure> {
        let around = Surroundings::read()?;
        let config_home = around
            .config_home
            .or_else(|| Some(around.home?.join(".config")))
            .ok_or_else(|| {
                Failure::user("there is no home directory for the tokens file")
                    .with_hint("name one with --file")
            })?;
        let directory = config_home.join("ahma_mcp");
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&directory)
            .map_err(|error| {
                Failure::user(format!("{} cannot be made: {error}", directory.display()))
                    .with_hint("give a file that you can write to with --file")
            })?;
        Ok(directory.join("tokens.json"))
    }

    pub(super) fn audit(task: AuditTask) -> Result<ExitCode, Failure> {
        let AuditTask::Verify { file } = task;
        let shown = file.display();
        match verify_audit(&file) {
            Ok(lines) => {
                print(format!(
                    "{shown}: {}, each follows from the one before\n",
                    counted(lines, "line")
                ))?;
                Ok(Exit::Success.into())
            }
            Err(AuditError::Io(error)) => Err(Failure::user(format!("{shown} cannot be read: {error}"))
                .with_hint("give a file that --audit-file wrote")),
            Err(error) => Err(Failure::user(format!("{shown}: {}", chain(&error))).with_hint(
                match error.intact_lines() {
                    0 => "nothing in this file can be relied on".to_owned(),
                    1 => "only line 1 is as it was written, as far as the chain can tell".to_owned(),
                    intact => {
                        format!("lines 1 to {intact} are as they were written, as far as the chain can tell")
                    }
                },
            )),
        }
    }
}
