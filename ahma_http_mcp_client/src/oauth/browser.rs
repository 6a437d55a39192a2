//! Opens the login page for the user, never through a shell.

use url::Url;

/// Whether a login may open the user's browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Browser {
    Open,
    /// Only the link is shown.
    Leave,
}

/// Tries to open `link`; failure is normal on a machine without a desktop, the link is shown anyway.
pub(super) async fn open(link: &Url) {
    // The address comes from a remote server: anything else than a web page could start a program.
    if !matches!(link.scheme(), "http" | "https") {
        return;
    }
    let link = link.to_string();
    let opened = tokio::task::spawn_blocking(move || {
        let mut options = webbrowser::BrowserOptions::new();
        // A text browser writing to our stdout would break the protocol.
        options.with_suppress_output(true);
        webbrowser::open_browser_with_options(webbrowser::Browser::Default, &link, &options)
    });
    match opened.await {
        Ok(Ok(())) => tracing::debug!("opened the browser"),
        Ok(Err(error)) => tracing::info!(%error, "no browser could be opened; use the link"),
        Err(error) => tracing::warn!(%error, "opening the browser failed"),
    }
}
