//! The page for those who are not logged in: what this is, and how to connect a client.

use ahma_http_bridge::Entry;
use axum::http::HeaderMap;
use maud::{Markup, html};

use super::layout;

pub(super) fn page(entry: Entry, refused: Option<&str>, headers: &HeaderMap) -> Markup {
    let host = headers
        .get("host")
        .and_then(|host| host.to_str().ok())
        .unwrap_or("127.0.0.1:3000");
    layout::frame(
        "Welcome",
        &html! {
            main.welcome {
                h1 { "Ahma" }
                p { "This server runs command-line programs for AI agents, in a sandbox that the kernel enforces." }
                @if let Some(refused) = refused { p.hint role="alert" { "Not logged in: " (layout::text(refused)) } }
                h2 { "See what runs" }
                (log_in(entry))
                @if entry != Entry::Link {
                    h2 { "Connect a client" }
                    p { "An MCP client connects to " code { "http://" (host) "/mcp" }
                        @if entry == Entry::Token { " with the header " code { "Authorization: Bearer TOKEN" }
                            "; " code { "ahma_mcp token new --name NAME" } " makes a token" } "." }
                    p { "An entry for the client's configuration:" }
                    pre tabindex="0" { "{\n  \"mcpServers\": {\n    \"Ahama\": { \"type\": \"http\", \"url\": \"http://" (host) "/mcp\" }\n  }\n}" }
                }
            }
        },
    )
}

fn log_in(entry: Entry) -> Markup {
    html! {
        @match entry {
            Entry::Link => p { "Open the link that " code { "ahma_mcp console" } " shows in its terminal. It is good for one browser; start the command again for another." },
            Entry::Button => form method="post" action="/console/login" { button { "Open the console" } },
            Entry::Token => form.filter method="post" action="/console/login" {
                label { "Token of an operator" input type="password" name="token" required autocomplete="current-password"; }
                button { "Log in" }
            },
        }
    }
}
