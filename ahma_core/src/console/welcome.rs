//! The page for those who are not logged in: what this is, and how to connect a client.

use ahma_http_bridge::{Entry, ServerAccess};
use maud::{Markup, html};

use super::layout;

pub(super) fn page(entry: Entry, server: Option<(&ServerAccess, &str)>, refused: Option<&str>) -> Markup {
    layout::frame(
        "Welcome",
        &html! {
            main.welcome {
                h1 { "Ahma" }
                p { "This server runs command-line programs for AI agents, in a sandbox that the kernel enforces." }
                @if let Some(refused) = refused { p.hint role="alert" { "Not logged in: " (layout::text(refused)) } }
                h2 { "See what runs" }
                (log_in(entry))
                @if let Some((server, host)) = server { (connect(server, host)) }
            }
        },
    )
}

/// The way for a client to this server, which the visitor knows by that host.
fn connect(server: &ServerAccess, host: &str) -> Markup {
    let scheme = if server.has_tls() { "https" } else { "http" };
    let url = format!("{scheme}://{host}/mcp");
    let with_token = server.takes_tokens();
    html! {
        h2 { "Connect a client" }
        p { "An MCP client connects to " code { (url) }
            @if with_token { " with a token" }
            @if server.has_tokens_file() { "; " code { "ahma_mcp token new --name NAME" } " makes one" } "." }
        p { "An entry for the client's configuration:" }
        pre tabindex="0" {
            "{\n  \"mcpServers\": {\n    \"Ahama\": {\n      \"type\": \"http\",\n      \"url\": \"" (url) "\""
            @if with_token { ",\n      \"headers\": { \"Authorization\": \"Bearer TOKEN\" }" }
            "\n    }\n  }\n}"
        }
    }
}

fn log_in(entry: Entry) -> Markup {
    html! {
        @match entry {
            Entry::Link => p { "Open the link that " code { "ahma_mcp console" } " shows in its terminal. It is good for one browser; start the command again for another." },
            Entry::Button => form method="post" action="/console/login" { button.first { "Open the console" } },
            Entry::Token => form.filter method="post" action="/console/login" {
                label { "Token of an operator" input type="password" name="token" required autocomplete="current-password"; }
                button.first { "Log in" }
            },
        }
    }
}
