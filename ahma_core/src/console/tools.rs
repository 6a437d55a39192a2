//! The tools and the sandbox of a server, as the server itself reports them.

use ahma_common::words::visible;
use maud::{Markup, html};
use serde_json::Value;

use super::{
    layout::{
        self,
        Head::{Number, Text},
        labelled, nothing, number, table, text,
    },
    now::server_client,
    pool::missing_here,
    routes::Visit,
    source::{SourceError, facts},
};
use crate::history::ServerRow;

pub(super) async fn tools_page(visit: &Visit) -> Result<Markup, SourceError> {
    let content = of_server(visit, |facts| html! { (mistakes(facts)) (tools(facts)) }).await?;
    Ok(layout::page(&visit.operator, "/console/tools", "Tools", &content))
}

pub(super) async fn sandbox_page(visit: &Visit) -> Result<Markup, SourceError> {
    let report = |facts: &Value| {
        let report = facts["sandbox"].as_str().unwrap_or("Nothing is known of it.");
        html! { pre tabindex="0" { (layout::lines(report)) } }
    };
    let content = of_server(visit, report).await?;
    Ok(layout::page(
        &visit.operator,
        "/console/sandbox",
        "Sandbox",
        &content,
    ))
}

/// A page about the server that was chosen, or about the newest one.
async fn of_server(visit: &Visit, show: impl Fn(&Value) -> Markup) -> Result<Markup, SourceError> {
    let Visit {
        console,
        operator,
        query,
    } = visit;
    let servers = console.source.servers(operator).await?;
    let wanted = query.text("server");
    let chosen = servers
        .iter()
        .find(|server| Some(&server.server) == wanted.as_ref())
        .or(servers.first());
    Ok(html! {
        (missing_here(console))
        @match chosen {
            None => (nothing("No server is running.")),
            Some(chosen) => {
                form.filter.server method="get" {
                    label { "Server" select name="server" {
                        @for server in &servers {
                            option value=(server.server) selected[server.server == chosen.server] { (described(server)) }
                        }
                    } }
                    button { "Show" }
                }
                (show(&facts(chosen)))
            }
        }
    })
}

fn described(server: &ServerRow) -> String {
    let client = server_client(&facts(server));
    let scope = server.scope.to_string_lossy();
    visible(&format!("{client} in {scope} (process {})", server.pid))
}

fn mistakes(facts: &Value) -> Markup {
    let problems = facts["problems"].as_array().map_or(&[][..], Vec::as_slice);
    let said = |problem: &Value, name: &str| text(problem[name].as_str().unwrap_or_default());
    html! {
        @if let Some(problem) = facts["directory_problem"].as_str() {
            p.hint { (text(facts["directory"].as_str().unwrap_or_default())) ": " (text(problem)) }
        }
        @if !problems.is_empty() {
            h2 { "Files with mistakes" }
            (table("Files with mistakes", &[Text("File"), Number("Line"), Text("Severity"), Text("Mistake")], &html! {
                @for problem in problems {
                    tr {
                        td { (said(problem, "file")) }
                        (number("Line", &html! { (problem["line"]) }))
                        td { (said(problem, "severity")) }
                        td.main { (said(problem, "message")) @if problem["hint"].is_string() { p.hint { (said(problem, "hint")) } } }
                    }
                }
            }))
        }
    }
}

fn tools(facts: &Value) -> Markup {
    let tools = facts["tools"].as_array().map_or(&[][..], Vec::as_slice);
    let listed = tools.iter().filter(|tool| tool["listed"] == true);
    let bytes: u64 = listed.clone().filter_map(|tool| tool["bytes"].as_u64()).sum();
    html! {
        h2 { "Offered" }
        p { (listed.count()) " of " (tools.len()) " tools are listed to clients, in " (layout::bytes(bytes)) "." }
        (table("Tools", &[Text("Tool"), Text("File"), Text("Listed"), Number("Bytes"), Text("Available")], &html! {
            @for tool in tools {
                tr {
                    td.name { (text(tool["name"].as_str().unwrap_or_default())) }
                    td { (text(tool["file"].as_str().unwrap_or("built in"))) }
                    (labelled("Listed", &html! { @if tool["listed"] == true { "yes" } @else { "found by search" } }))
                    (number("Bytes", &html! { (tool["bytes"]) }))
                    td.rest data-label="Available" { @match tool["missing"].as_str() { Some(missing) => span.missing { (text(missing)) }, None => "yes" } }
                }
            }
        }))
    }
}
