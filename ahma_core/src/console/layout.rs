//! The frame of every page, and how times, sizes and states look in all of them.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::LazyLock,
    time::{Duration, SystemTime},
};

use ahma_common::words::visible;
use ahma_http_bridge::Operator;
use maud::{DOCTYPE, Markup, html};
use url::form_urlencoded;

use super::{source::SourceError, terminal};
use crate::{
    history::OperationRow,
    observe::{Severity, SeverityCounts},
    operation::{OperationState, rfc3339},
};

/// A file that comes with the pages.
pub(super) struct Asset {
    pub(super) name: &'static str,
    pub(super) kind: &'static str,
    pub(super) text: &'static str,
}

pub(super) const ASSETS: [Asset; 3] = [
    Asset {
        name: "style.css",
        kind: "text/css; charset=utf-8",
        text: include_str!("assets/style.css"),
    },
    Asset {
        name: "script.js",
        kind: "text/javascript; charset=utf-8",
        text: include_str!("assets/script.js"),
    },
    Asset {
        name: "icon.svg",
        kind: "image/svg+xml",
        text: include_str!("assets/icon.svg"),
    },
];

/// Changes with the assets, which browsers keep.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let mut hasher = DefaultHasher::new();
    ASSETS.iter().for_each(|asset| asset.text.hash(&mut hasher));
    format!("{:016x}", hasher.finish())
});

fn asset(name: &str) -> String {
    format!("/console/assets/{}/{name}", *VERSION)
}

/// Pages that every other one leads to.
const PAGES: [(&str, &str); 5] = [
    ("/", "Now"),
    ("/console/history", "History"),
    ("/console/tools", "Tools"),
    ("/console/sandbox", "Sandbox"),
    ("/console/audit", "Audit"),
];

/// A whole page for an operator.
pub(super) fn page(operator: &Operator, place: &str, title: &str, content: &Markup) -> Markup {
    frame(
        title,
        &html! {
            header {
                a.skip href="#content" { "Skip to the content" }
                a.brand href="/" { "Ahma" }
                nav aria-label="Pages" {
                    @for (path, name) in PAGES {
                        a href=(path) aria-current=[(path == place).then_some("page")] { (name) }
                    }
                }
                form method="post" action="/console/logout" {
                    (form_token(operator))
                    span.who { (text(&operator.name)) }
                    button { "Log out" }
                }
            }
            main id="content" {
                div.title { h1 { (text(title)) } span.live id="live" role="status" hidden {} }
                (content)
            }
        },
    )
}

pub(super) fn frame(title: &str, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (visible(title)) " · Ahma" }
                link rel="icon" href=(asset("icon.svg"));
                link rel="stylesheet" href=(asset("style.css"));
                script src=(asset("script.js")) defer {}
            }
            body { (body) }
        }
    }
}

pub(super) fn failure(title: &str, error: &SourceError) -> Markup {
    let why = ahma_common::error_chain(error).to_string();
    frame(
        title,
        &html! { main.welcome { h1 { (title) } p { (text(&why)) } p { a href="/" { "Back to the console" } } } },
    )
}

/// The sentence on a page that would be live.
pub(super) fn stands_still() -> Markup {
    html! { noscript { p.count { "Without JavaScript this page stands still; load it again to see what is new." } } }
}

pub(super) fn form_token(operator: &Operator) -> Markup {
    html! { input type="hidden" name="form_token" value=(operator.form_token); }
}

/// Heading of a column.
#[derive(Debug, Clone, Copy)]
pub(super) enum Head {
    Text(&'static str),
    /// Numbers end where those above and below end.
    Number(&'static str),
}

/// A table that may be wider than the window. In a narrow one, each row is a block of its own.
pub(super) fn table(label: &str, head: &[Head], rows: &Markup) -> Markup {
    html! {
        div.table tabindex="0" role="region" aria-label=(label) {
            table {
                thead { tr { @for head in head {
                    @match head {
                        Head::Text(name) => th scope="col" { (name) },
                        Head::Number(name) => th.number scope="col" { (name) },
                    }
                } } }
                tbody { (rows) }
            }
        }
    }
}

/// A number in a row. Where the row is a block, its heading is beside it.
pub(super) fn number(head: &str, value: &Markup) -> Markup {
    html! { td.number data-label=(head) { (value) } }
}

/// A text that says nothing without its heading, which is beside it where the row is a block.
pub(super) fn labelled(head: &str, value: &Markup) -> Markup {
    html! { td data-label=(head) { (value) } }
}

/// The sentence in place of what is not there.
pub(super) fn nothing(text: &str) -> Markup {
    html! { p.nothing { (text) } }
}

/// Text from commands, clients and tool files, on one line.
pub(super) fn text(text: &str) -> Markup {
    terminal::visible(text.chars())
}

/// Such text of more than one line.
pub(super) fn lines(lines: &str) -> Markup {
    html! { @for line in lines.lines() { (text(line)) "\n" } }
}

pub(super) fn operation_path(id: &str) -> String {
    let id: String = form_urlencoded::byte_serialize(id.as_bytes()).collect();
    format!("/console/operations/{id}")
}

pub(super) fn operation_link(id: &str, command: &str) -> Markup {
    html! { a href=(operation_path(id)) { (text(command)) } }
}

/// The state of an operation or of a step, by its name.
pub(super) fn state(name: &str) -> Markup {
    html! { span class={ "state " (name) } { (name.replace('_', " ")) } }
}

/// A moment to the second, in UTC.
pub(super) fn moment(at: SystemTime) -> Markup {
    written_moment(&rfc3339(at))
}

/// The same of one that is written as RFC 3339 has it.
pub(super) fn written_moment(whole: &str) -> Markup {
    let short: String = whole.chars().take(19).collect();
    html! { time datetime=(whole) { (text(&short.replace('T', " "))) } }
}

/// Time since a moment, which goes on by itself.
pub(super) fn since(at: SystemTime) -> Markup {
    let millis = at
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
        .as_millis();
    html! { span data-since=(millis) { (span(at.elapsed().unwrap_or_default())) } }
}

/// A line of a summary.
pub(super) fn field(name: &str, value: &Markup) -> Markup {
    html! { div { dt { (name) } dd { (value) } } }
}

/// Heading of the time that an operation has taken so far, or took.
pub(super) fn time_heading(state: OperationState) -> &'static str {
    match state {
        OperationState::Running => "Running for",
        _ => "Took",
    }
}

pub(super) fn took(row: &OperationRow) -> Markup {
    match row.started_at {
        Some(at) if !row.state.is_final() => since(at),
        Some(_) => html! { (span(row.duration)) },
        None => html! { "–" },
    }
}

pub(super) fn span(duration: Duration) -> String {
    match duration.as_secs() {
        0 => format!("{} ms", duration.as_millis()),
        1..10 => format!("{:.1} s", duration.as_secs_f64()),
        seconds @ 10..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
    }
}

pub(super) fn bytes(bytes: u64) -> String {
    let (mut value, mut unit) = (bytes as f64, "B");
    for larger in ["KB", "MB", "GB", "TB"] {
        if value < 1_000.0 {
            break;
        }
        (value, unit) = (value / 1_024.0, larger);
    }
    let places = usize::from(unit != "B" && value < 10.0);
    format!("{value:.places$} {unit}")
}

pub(super) fn client(row: &OperationRow) -> Markup {
    let names: Vec<&str> = [row.owner.principal.name(), row.program.as_deref()]
        .into_iter()
        .flatten()
        .collect();
    match names.as_slice() {
        [] => html! { "–" },
        names => text(&names.join(" · ")),
    }
}

/// Severities, the worst first.
pub(super) const SEVERITIES: [Severity; 5] = [
    Severity::Critical,
    Severity::High,
    Severity::Medium,
    Severity::Low,
    Severity::Info,
];

pub(super) fn severity(severity: Severity) -> Markup {
    html! { span class={ "severity " (severity.as_str()) } { (severity.as_str()) } }
}

pub(super) fn counts(counts: &SeverityCounts) -> Markup {
    let of = [
        counts.critical,
        counts.high,
        counts.medium,
        counts.low,
        counts.info,
    ];
    let some = SEVERITIES.into_iter().zip(of).filter(|(_, count)| *count > 0);
    html! {
        @for (kind, count) in some {
            span class={ "severity " (kind.as_str()) } { (count) " " (kind.as_str()) } " "
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_with_the_pages_is_small_and_from_here() {
        let bytes: usize = ASSETS.iter().map(|asset| asset.text.len()).sum();
        assert!(bytes < 100_000, "{bytes} bytes");
        for asset in ASSETS {
            let elsewhere = asset.text.matches("://").count();
            // The name of the SVG format is an address that is never asked for.
            assert_eq!(elsewhere, usize::from(asset.name == "icon.svg"), "{}", asset.name);
        }
    }
}
