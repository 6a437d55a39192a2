//! The tools and the sandbox of a server, as it says itself.

use ahma_http_bridge::Operator;
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
    query::Query,
    routes::Console,
    source::{SourceError, facts},
};
use crate::history::ServerRow;

pub(super) async fn tools_page(
    console: &Console,
    operator: &Operator,
    query: &Query,
) -> Result<Markup, SourceError> {
    let servers = console.source.servers(operator).await?;
    let content = of_server(console, &servers, query, |facts| {
        html! {
            (mistakes(facts))
            (tools(facts))
        }
    });
    Ok(layout::page(operator, "/console/tools", "Tools", &content))
}

pub(super) async fn sandbox_page(
    console: &Console,
    operator: &Operator,
    query: &Query,
) -> Result<Markup, SourceError> {
    let servers = console.source.servers(operator).await?;
    let content = of_server(console, &servers, query, |facts| {
        html! { pre tabindex="0" { (facts["sandbox"].as_str().unwrap_or("Nothing is known of it.")) } }
    });
    Ok(layout::page(operator, "/console/sandbox", "Sandbox", &content))
}

/// The page of the server that was chosen, or of the newest one.
fn of_server(
    console: &Console,
    servers: &[ServerRow],
    query: &Query,
    show: impl Fn(&Value) -> Markup,
) -> Markup {
    let wanted = query.text("server");
    let chosen = servers
        .iter()
        .find(|server| Some(&server.server) == wanted.as_ref());
    let Some(chosen) = chosen.or(servers.first()) else {
        return html! { (missing_here(console)) (nothing("No server is running.")) };
    };
    html! {
        (missing_here(console))
        form.filter method="get" {
            label { "Server" select name="server" {
                @for server in servers {
                    option value=(server.server) selected[server.server == chosen.server] {
                        (server_client(&facts(server))) " in " (server.scope.to_string_lossy()) " (process " (server.pid) ")"
                    }
                }
            } }
            button { "Show" }
        }
        (show(&facts(chosen)))
    }
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
        (table("Tools", &[Text("Tool"), Text("File"), Text("Listed"), Text("Available"), Number("Bytes")], &html! {
            @for tool in tools {
                tr {
                    td.main { (text(tool["name"].as_str().unwrap_or_default())) }
                    td { (text(tool["file"].as_str().unwrap_or("built in"))) }
                    (labelled("Listed", &html! { @if tool["listed"] == true { "yes" } @else { "found by search" } }))
                    (labelled("Available", &html! { @match tool["missing"].as_str() { Some(missing) => span.missing { (text(missing)) }, None => "yes" } }))
                    (number("Bytes", &html! { (tool["bytes"]) }))
                }
            }
        }))
    }
}
