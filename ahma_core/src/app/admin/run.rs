//! Sends the request of an `ahma_mcp admin` command to the server and prints the answer.

use std::{fs, path::Path, time::Duration};

use ahma_http_bridge::{AdminClient, AdminClientError, Secret};
use serde_json::{Value, json};

use super::args::{AdminCommand, AdminFormat, AdminOptions};
use super::printed::Printed;
use super::table::{self, Column, FINDINGS, HISTORY, OPERATIONS, SERVERS, SESSIONS, WORKER, render};
use crate::app::{
    exit::{Failure, chain, print},
    run::runtime,
};

/// Interval at which `tail` asks for new output.
const TAIL_INTERVAL: Duration = Duration::from_millis(300);
/// Lines that `tail` begins with.
const FIRST_LINES: u64 = 20;

pub(crate) fn run(command: AdminCommand) -> Result<(), Failure> {
    let format = command.options().format;
    let client = client(command.options())?;
    runtime()?.block_on(carry_out(&client, command, format))
}

/// Has a server revoke a token of its file and stop the work started with it.
pub(crate) fn revoke_and_stop_work(name: &str, options: &AdminOptions) -> Result<(), Failure> {
    let client = client(options)?;
    let query = [("stop_work", "true".to_owned())];
    runtime()?.block_on(client.delete(&["tokens", name], &query))?;
    Ok(())
}

fn client(options: &AdminOptions) -> Result<AdminClient, Failure> {
    let token = match &options.admin_token_file {
        Some(file) => Some(read_token(file)?),
        None => options.admin_token.clone(),
    };
    Ok(AdminClient::new(&options.admin_url, token)?)
}

fn read_token(file: &Path) -> Result<Secret, Failure> {
    let shown = file.display();
    let text = fs::read_to_string(file).map_err(|error| {
        Failure::user(format!("--admin-token-file {shown} cannot be read: {error}"))
            .with_hint("give a file that holds the token of an operator")
    })?;
    Ok(Secret::new(text.trim()))
}

async fn carry_out(client: &AdminClient, command: AdminCommand, format: AdminFormat) -> Result<(), Failure> {
    match command {
        AdminCommand::Sessions { .. } => {
            let answer = client.get(&["sessions"], &[]).await?;
            show_list(&answer, format, "sessions", &SESSIONS)
        }
        AdminCommand::Operations {
            status, principal, ..
        } => {
            let mut query = Vec::new();
            query.extend(status.map(|status| ("status", status)));
            query.extend(principal.map(|principal| ("principal", principal)));
            let answer = client.get(&["operations"], &query).await?;
            show(&answer, format, |answer| {
                let rows = rows(&answer["operations"]);
                let mut columns = OPERATIONS.to_vec();
                if rows.iter().any(|row| row["worker"].is_string()) {
                    columns.insert(columns.len() - 1, WORKER);
                }
                render(&columns, rows)
            })
        }
        AdminCommand::History(choice) => {
            let answer = client.get(&["history"], &choice.query()).await?;
            show_list(&answer, format, "operations", &HISTORY)
        }
        AdminCommand::Show { operation, .. } => {
            let answer = client.get(&["history", &operation], &[]).await?;
            show(&answer, format, table::record)
        }
        AdminCommand::Findings { operation, .. } => {
            let answer = findings(client, &operation).await?;
            show_list(&answer, format, "findings", &FINDINGS)
        }
        AdminCommand::Export { operation, form, .. } => {
            print(client.get_file(&["history", &operation, &form]).await?)
        }
        AdminCommand::Servers { .. } => {
            let answer = client.get(&["servers"], &[]).await?;
            show_list(&answer, format, "servers", &SERVERS)
        }
        AdminCommand::Audit { lines, .. } => {
            let query = [("lines", lines.to_string())];
            let answer = client.get(&["audit"], &query).await?;
            show(&answer, format, table::trail)
        }
        AdminCommand::Tail { operation, .. } => tail(client, &operation).await,
        AdminCommand::Cancel {
            operation, reason, ..
        } => {
            let body = json!({ "reason": reason });
            let answer = client.post(&["operations", &operation, "cancel"], body).await?;
            show(&answer, format, |answer| match rows(&answer["stopped"]) {
                [] => format!("{operation} had ended already\n"),
                _ => format!("{operation} is cancelled\n"),
            })
        }
        AdminCommand::End { session, reason, .. } => {
            let query: Vec<_> = reason.into_iter().map(|reason| ("reason", reason)).collect();
            let answer = client.delete(&["sessions", &session], &query).await?;
            show(&answer, format, |_| format!("{session} is ended\n"))
        }
        AdminCommand::Drain { .. } => {
            let answer = client.post(&["drain"], json!({})).await?;
            show(&answer, format, |answer| {
                format!(
                    "the server takes no new work; what runs may finish for {} s\n",
                    answer["seconds"]
                )
            })
        }
    }
}

/// The findings of all pages in one answer.
async fn findings(client: &AdminClient, operation: &str) -> Result<Value, AdminClientError> {
    let mut all = Vec::new();
    let mut from = 0;
    loop {
        let query = [("from", from.to_string())];
        let mut page = client.get(&["operations", operation, "findings"], &query).await?;
        if let Some(found) = page["findings"].as_array_mut() {
            all.append(found);
        }
        match page["next"].as_u64() {
            Some(next) => from = next,
            None => {
                page["findings"] = all.into();
                return Ok(page);
            }
        }
    }
}

/// Prints output as it comes, until the operation has ended.
async fn tail(client: &AdminClient, operation: &str) -> Result<(), Failure> {
    let mut query = vec![("lines", FIRST_LINES.to_string())];
    let mut printed = Printed::default();
    loop {
        let page = client.get(&["operations", operation, "output"], &query).await?;
        let text = page["text"].as_str().unwrap_or_default();
        print(printed.text(text))?;
        let next = page["next_byte"].as_u64().unwrap_or(0);
        query = vec![("from_byte", next.to_string())];
        // Output that could not be kept counts in the total and is never delivered.
        let has_more = !text.is_empty() && page["total_bytes"].as_u64().is_some_and(|total| next < total);
        match (has_more, page["has_ended"] == true) {
            (true, _) => {}
            (false, true) => return Ok(()),
            (false, false) => tokio::time::sleep(TAIL_INTERVAL).await,
        }
    }
}

fn rows(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Shows the list `name` of an answer as a table.
fn show_list(answer: &Value, format: AdminFormat, name: &str, columns: &[Column]) -> Result<(), Failure> {
    show(answer, format, |answer| render(columns, rows(&answer[name])))
}

fn show(answer: &Value, format: AdminFormat, text: impl FnOnce(&Value) -> String) -> Result<(), Failure> {
    print(match format {
        AdminFormat::Text => text(answer),
        AdminFormat::Json => format!("{answer:#}\n"),
    })
}

impl From<AdminClientError> for Failure {
    fn from(error: AdminClientError) -> Self {
        let hint = match &error {
            AdminClientError::Address(_) => "give an address such as http://127.0.0.1:3000 with --admin-url",
            AdminClientError::Unreachable { .. } => "is it running? --admin-url gives another address",
            error if error.is_about_rights() => {
                "give the token of an operator in AHMA_ADMIN_TOKEN or with --admin-token-file; ahma_mcp token new --role operator makes one"
            }
            AdminClientError::Refused { .. } => "ahma_mcp admin sessions and operations list what there is",
            AdminClientError::Answer(_) | AdminClientError::Form(_) => {
                "is this the address of an ahma_mcp server?"
            }
        };
        Self::user(chain(&error)).with_hint(hint)
    }
}
