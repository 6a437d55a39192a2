//! Checks of the project's toolchains and tool files, and of its clients.

use std::path::Path;

use tokio_util::sync::CancellationToken;

use super::check::Check;
use crate::{
    app::{
        active_sandbox::ActiveSandbox,
        clients::{Client, Fit, SERVER},
        exit::Failure,
        init::find_entry,
        packs::{self, Pack},
        project::{find_on_path, read_text},
        run::{PROBE_TIMEOUT, ToolboxUse, open_toolbox},
        settings::Settings,
    },
    catalog::{Catalog, Expose},
    mcp,
    mtdf::ProblemSeverity,
    toolbox::{LackingTools, Toolbox},
};

/// The programs that the packs for the project need on PATH.
pub(super) fn toolchains(project: &Path) -> Result<Vec<Check>, Failure> {
    let check = |pack: Pack| {
        let program = pack.program.as_deref()?;
        Some(match find_on_path(program) {
            Some(path) => Check::ok("toolchains", format!("{}: {}", pack.title(), path.display())),
            None => Check::note(
                "toolchains",
                format!("{}: {program} is not on PATH", pack.title()),
            ),
        })
    };
    Ok(packs::chosen(project, &[])?
        .into_iter()
        .filter_map(check)
        .collect())
}

/// Number of tools from files; others are built in.
fn of_files(catalog: &Catalog) -> usize {
    catalog.tools().filter(|tool| tool.file.is_some()).count()
}

pub(super) async fn tool_files(settings: &Settings, sandbox: &ActiveSandbox) -> Vec<Check> {
    let shutdown = CancellationToken::new();
    let toolbox = open_toolbox(settings, &sandbox.prober, &shutdown, ToolboxUse::Look)
        .settled(PROBE_TIMEOUT)
        .await;
    shutdown.cancel();
    let directory = toolbox.directory.display();
    if let Some(problem) = &toolbox.directory_problem {
        return vec![
            Check::warning("tools", format!("no tool files in {directory}: {problem}")).with_fix(
                match &settings.enclosing {
                    Some(whole) => whole.advice(),
                    None => "ahma_mcp init writes some for this project".to_owned(),
                },
            ),
        ];
    }
    let (offered, all) = (of_files(&toolbox.offered), of_files(&toolbox.catalog));
    let mut checks = vec![match (offered, all) {
        // The mistakes in each file follow.
        (0, 0) => Check::warning("tools", format!("no tools in {directory}"))
            .with_fix("ahma_mcp init writes some for this project"),
        (0, all) => Check::warning(
            "tools",
            format!("none of the {all} tools in {directory} is available"),
        )
        .with_fix("see below; until then clients have only the built-in tools"),
        _ => Check::ok(
            "tools",
            format!("{offered} of {all} tools in {directory} are available"),
        ),
    }];
    for problem in &toolbox.problems {
        let text = problem.to_string();
        let check = match problem.severity {
            ProblemSeverity::Error => Check::problem("tools", text),
            ProblemSeverity::Warning => Check::warning("tools", text),
        };
        // The text suggests a correction where one is known.
        let file = toolbox.directory.join(&problem.file);
        checks.push(check.with_fix(format!("edit {}", file.display())));
    }
    checks.extend(toolbox.lacking().iter().map(unavailable));
    checks.extend(cost(&toolbox));
    checks
}

/// More than this leaves a model less room for its work, and makes it choose worse.
const MAX_LIST_TOKENS: usize = 8_000;

/// A list of tools that takes much of what a model can read.
fn cost(toolbox: &Toolbox) -> Option<Check> {
    let bytes: usize = mcp::costs(toolbox).iter().map(|tool| tool.bytes).sum();
    let tokens = bytes / mcp::ToolCost::BYTES_PER_TOKEN;
    let fix = match toolbox.present.expose() {
        Expose::All => "leave out --expose all",
        Expose::Core | Expose::Search => {
            "set \"level\": \"extended\" for tools of rare use; --mode list-tools --format cost shows what each takes"
        }
    };
    (tokens > MAX_LIST_TOKENS).then(|| {
        let what = format!("the list of tools takes about {tokens} tokens of every session");
        Check::warning("tools", what).with_fix(fix)
    })
}

/// One line for each missing program, not for each of its tools.
fn unavailable(lacking: &LackingTools) -> Check {
    let instructions = lacking.install_instructions.as_deref();
    Check::warning("tools", format!("{}: {}", lacking.reason, lacking.names()))
        .with_fix(instructions.unwrap_or("install the program, or set \"enabled\": false in the tool file"))
}

pub(super) fn clients(settings: &Settings, home: Option<&Path>) -> Vec<Check> {
    const AREA: &str = "clients";
    let project = &settings.sandbox.scope;
    let mut checks = Vec::new();
    let mut configured = false;
    for client in Client::all() {
        let Some(file) = client.file(project, home) else {
            continue;
        };
        let Ok(text) = read_text(&file) else {
            continue;
        };
        let shown = format!("{}: {}", client.name(), file.display());
        let init = format!("ahma_mcp init --client {} adds it", client.flag());
        checks.push(match find_entry(client, &text) {
            Err(why) => Check::problem(AREA, format!("{shown} cannot be read: {why}"))
                .with_fix("fix the file; until then the client starts no server"),
            Ok(None) => Check::note(AREA, format!("{shown} has no server {SERVER}")).with_fix(init),
            Ok(Some(entry)) => {
                let fit = client.fit(&entry, project);
                if let Some(check) = misfit(fit, client, &shown) {
                    configured |= fit == Fit::NoScope;
                    checks.push(check);
                    continue;
                }
                let command = entry["command"].as_str().unwrap_or_default();
                let found = if command.contains('/') {
                    Path::new(command).is_file()
                } else {
                    find_on_path(command).is_some()
                };
                configured |= found;
                if found {
                    Check::ok(AREA, format!("{shown} starts {command}"))
                } else {
                    Check::problem(AREA, format!("{shown} starts {command}, which does not exist"))
                        .with_fix("install it, or write the path of ahma_mcp into the entry")
                }
            }
        });
    }
    if !configured {
        checks.push(
            Check::warning(AREA, "no client is set up for this project").with_fix(
                match &settings.enclosing {
                    Some(whole) => whole.advice(),
                    None => format!("ahma_mcp init --client {}", Client::flag_values()),
                },
            ),
        );
    }
    checks
}

/// A check for an entry that does not fit this project.
fn misfit(fit: Fit, client: Client, shown: &str) -> Option<Check> {
    const AREA: &str = "clients";
    let init = format!("ahma_mcp init --client {} shows what to change", client.flag());
    match fit {
        Fit::Good => None,
        Fit::NoScope => Some(
            Check::warning(
                AREA,
                format!("{shown} does not say which project its server {SERVER} is for"),
            )
            .with_fix(format!("{init}: --sandbox-scope ${{workspaceFolder}} is missing")),
        ),
        // No problem: the client is used for another project.
        Fit::AnotherProject => Some(Check::note(
            AREA,
            format!("{shown} has a server {SERVER} for another project"),
        )),
        Fit::AnotherProgram => Some(
            Check::warning(
                AREA,
                format!("{shown} has a server {SERVER} that is another program"),
            )
            .with_fix(init),
        ),
    }
}
