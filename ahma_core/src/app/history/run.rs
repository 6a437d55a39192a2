//! From the flags of `ahma_mcp history` to its output.

use std::{
    io,
    path::Path,
    time::{Duration, SystemTime},
};

use ahma_common::words::counted;
use serde_json::{Value, json};

use super::{
    archive::{Archive, FoundRow, RemovalCount},
    args::{ChoiceArgs, ExportForm, HistoryArgs, HistoryTask},
    table,
};
use crate::{
    app::{
        active_sandbox,
        args::Args,
        exit::{Exit, Failure, notice, print},
        run::runtime,
        settings::{Environment, Format, Settings},
    },
    history::{FindingFilter, OperationFilter, document, export},
    operation::{Operation, OutputQuery, PageError},
};

/// Bytes of output in one step.
const STEP_BYTES: usize = 1 << 20;

pub(in crate::app) fn run(own: HistoryArgs, args: Args) -> Result<(), Failure> {
    let format = args.format.unwrap_or(Format::Text);
    if format == Format::Cost {
        return Err(
            Failure::new(Exit::Usage, "--format cost is for --mode list-tools")
                .with_hint("the history is printed as text or json"),
        );
    }
    let settings = Settings::resolve(args, &Environment::read()?)?;
    let archive = Archive::open(active_sandbox::history_places(&settings))?;
    match own.task {
        None => archive.list(own.choice, format),
        Some(HistoryTask::Show { id }) => archive.show(&id, format),
        Some(HistoryTask::Output { id, grep, tail }) => archive.output(&id, grep, tail, format),
        Some(HistoryTask::Findings {
            severity,
            since,
            limit,
        }) => archive.findings(
            &FindingFilter {
                owner: None,
                least: severity,
                since: since.map(ago),
                limit,
            },
            format,
        ),
        Some(HistoryTask::Export { id, form, to }) => archive.export(&id, form, to.as_deref()),
        Some(HistoryTask::Remove { ids, choice, all }) => archive.remove(&ids, choice, all, format),
    }
}

fn ago(age: Duration) -> SystemTime {
    SystemTime::now()
        .checked_sub(age)
        .unwrap_or(SystemTime::UNIX_EPOCH)
}

impl Archive {
    fn list(&self, choice: ChoiceArgs, format: Format) -> Result<(), Failure> {
        let rows = self.operations(&filter(choice))?;
        print_rows(
            "operations",
            &rows,
            format,
            document::operation,
            table::operations,
        )
    }

    fn show(&self, id: &str, format: Format) -> Result<(), Failure> {
        let FoundRow { row, .. } = self.row(id)?;
        match format {
            Format::Json => print_json(&document::operation(&row)),
            Format::Text | Format::Cost => print(table::operation(&row)),
        }
    }

    fn findings(&self, filter: &FindingFilter, format: Format) -> Result<(), Failure> {
        let rows = self.found(filter)?;
        print_rows("findings", &rows, format, document::finding, table::findings)
    }

    fn output(
        &self,
        id: &str,
        grep: Option<String>,
        tail: Option<u64>,
        format: Format,
    ) -> Result<(), Failure> {
        let found = self.row(id)?;
        let (row, operation) = (&found.row, found.recall()?);
        let query = match (grep, tail) {
            (Some(pattern), _) => Some(OutputQuery::Grep {
                pattern,
                context: 0,
                from_line: 1,
                max_lines: u64::MAX,
            }),
            (None, Some(lines)) => Some(OutputQuery::Tail { lines }),
            (None, None) => None,
        };
        let mut text = Vec::new();
        match (query, format) {
            (None, Format::Text | Format::Cost) => return copy_output(&operation, &mut io::stdout().lock()),
            (None, Format::Json) => copy_output(&operation, &mut text)?,
            (Some(query), _) => {
                let page = runtime()?
                    .block_on(operation.output().read(query))
                    .map_err(unreadable)?;
                text = page.text.into_bytes();
            }
        }
        match format {
            Format::Json => {
                let text = String::from_utf8_lossy(&text);
                print_json(&json!({ "id": row.id, "status": row.state, "output": text }))
            }
            Format::Text | Format::Cost => print(text),
        }
    }

    fn export(&self, id: &str, form: ExportForm, to: Option<&Path>) -> Result<(), Failure> {
        let found = self.row(id)?;
        let (row, operation) = (&found.row, found.recall()?);
        let mut document = Vec::new();
        match form {
            ExportForm::Sarif => document.extend(export::sarif(&operation).bytes()),
            ExportForm::Junit => document.extend(export::junit(&operation).bytes()),
            ExportForm::Json => document.extend(export::json(row, &operation).bytes()),
            ExportForm::Text => copy_output(&operation, &mut document)?,
        }
        match to {
            None => print(document),
            Some(path) => std::fs::write(path, document).map_err(|error| {
                Failure::user(format!("--to {} cannot be written: {error}", path.display()))
                    .with_hint("give a file in a directory that exists and that you can write to")
            }),
        }
    }

    fn remove(
        mut self,
        ids: &[String],
        choice: ChoiceArgs,
        all: bool,
        format: Format,
    ) -> Result<(), Failure> {
        let is_chosen = choice.tool.is_some()
            || choice.status.is_some()
            || choice.client.is_some()
            || choice.since.is_some()
            || choice.text.is_some();
        if ids.is_empty() && !is_chosen && !all {
            return Err(Failure::new(Exit::Usage, "history remove names no operation")
                .with_hint("give ids, one of --tool --status --client --since --text, or --all"));
        }
        let RemovalCount { removed, running } = if ids.is_empty() {
            self.remove_all(&OperationFilter {
                limit: usize::MAX,
                ..filter(choice)
            })
        } else {
            self.remove_named(ids)
        }?;
        match format {
            Format::Json => print_json(&json!({ "removed": removed, "running": running })),
            Format::Text | Format::Cost => {
                let running = match running {
                    0 => String::new(),
                    running => format!("; {running} still running"),
                };
                print(format!(
                    "removed {}{running}\n",
                    counted(removed as u64, "operation")
                ))
            }
        }
    }
}

fn filter(choice: ChoiceArgs) -> OperationFilter {
    OperationFilter {
        tool: choice.tool,
        state: choice.status,
        client: choice.client,
        since: choice.since.map(ago),
        text: choice.text,
        limit: choice.limit,
        ..OperationFilter::default()
    }
}

/// Copies the output in pieces. A closed pipe is no error.
fn copy_output(operation: &Operation, target: &mut impl io::Write) -> Result<(), Failure> {
    let runtime = runtime()?;
    let mut offset = 0;
    loop {
        let piece = runtime
            .block_on(operation.output().bytes(offset, STEP_BYTES))
            .map_err(unreadable)?;
        if piece.is_empty() {
            break;
        }
        offset += piece.len() as u64;
        match target.write_all(&piece).and_then(|()| target.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            Err(error) => return Err(Failure::user(format!("cannot write to stdout: {error}"))),
            Ok(()) => {}
        }
    }
    if let Some(loss) = operation.output().loss() {
        let bytes = loss.bytes;
        notice(format_args!(
            "warning: {bytes} bytes were printed but could not be kept"
        ));
    }
    Ok(())
}

fn print_rows<T>(
    name: &str,
    rows: &[T],
    format: Format,
    as_json: fn(&T) -> Value,
    as_table: fn(&[T]) -> String,
) -> Result<(), Failure> {
    match format {
        Format::Json => print_json(&json!({ name: rows.iter().map(as_json).collect::<Vec<_>>() })),
        Format::Text | Format::Cost if rows.is_empty() => print(format!("no {name}\n")),
        Format::Text | Format::Cost => print(as_table(rows)),
    }
}

fn print_json(value: &Value) -> Result<(), Failure> {
    print(serde_json::to_string_pretty(value).unwrap_or_default() + "\n")
}

#[expect(clippy::needless_pass_by_value, reason = "map_err gives it like this")]
fn unreadable(error: PageError) -> Failure {
    match error {
        PageError::Pattern(_) => {
            Failure::new(Exit::Usage, format!("--{error}")).with_hint("write it as for grep -E, in quotes")
        }
        PageError::Storage(_) => Failure::internal("the output cannot be read", &error),
    }
}
