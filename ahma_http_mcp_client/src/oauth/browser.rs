//! Opens the login page in the user's browser, never through a shell.
//!
//! A browser must never touch our standard streams, which carry the protocol, and is not waited for. The `webbrowser`
//! crate gives both streams to a text browser and waits for it, so it would have to run in a process of its own: a hidden
//! role that every program with this library would have to offer. That is more code than this file.

use std::process::Stdio;

use tokio::process::Command;
use url::Url;

/// Permission of a login to open the user's browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Browser {
    Open,
    /// Only the link is shown.
    Leave,
}

/// Programs of desktops for this, tried after the user's own `BROWSER`.
const OPENERS: [&str; 4] = ["xdg-open", "open", "wslview", "x-www-browser"];

/// Tries to open `link`. Failure is normal on a machine without a desktop; the link is shown anyway.
pub fn open(link: &Url) {
    // The address comes from a remote server: anything but a web page could start a program.
    if !matches!(link.scheme(), "http" | "https") {
        return;
    }
    let preferred = std::env::var("BROWSER").unwrap_or_default();
    let candidates = preferred.split(':').chain(OPENERS);
    let started = candidates.map(|entry| command(entry, link)).find_map(|words| {
        let (program, arguments) = words.split_first()?;
        start(program, arguments).ok().map(|()| program.clone())
    });
    match started {
        Some(program) => tracing::debug!(program, "opened the browser"),
        None => tracing::info!("no browser could be opened; use the link"),
    }
}

/// The words of one entry of `BROWSER`, with the link where it says so or else at the end.
fn command(entry: &str, link: &Url) -> Vec<String> {
    let mut words: Vec<String> = entry.split_whitespace().map(str::to_owned).collect();
    if let Some(word) = words.iter_mut().find(|word| word.contains("%s")) {
        *word = word.replace("%s", link.as_str());
    } else if !words.is_empty() {
        words.push(link.to_string());
    }
    words
}

fn start(program: &str, arguments: &[String]) -> std::io::Result<()> {
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // An interrupt that is meant for us does not close the user's browser.
        .process_group(0)
        .spawn()
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_link_goes_where_the_user_says() {
        let link = "https://x.example/login?a=%25s".parse().unwrap();
        for (entry, expected) in [
            ("firefox", &["firefox", "https://x.example/login?a=%25s"][..]),
            (
                "chromium --new --app=%s",
                &["chromium", "--new", "--app=https://x.example/login?a=%25s"],
            ),
            (" ", &[]),
        ] {
            assert_eq!(command(entry, &link), expected);
        }
    }
}
