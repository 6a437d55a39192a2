//! Addresses as they may be shown. Messages about a server end up with a model and in a log, and its address may hold
//! a password or a key.

use url::Url;

/// Placeholder for what is not shown.
const HIDDEN: &str = "…";

/// The address without password, fragment and the values of its query.
pub fn shown_address(url: &Url) -> String {
    without_secrets(url.as_str())
}

/// The text with every address in it as [`shown_address`] has it.
pub(crate) fn without_secrets(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = next_address(rest) {
        let (before, address) = rest.split_at(start);
        // These are encoded in an address, so they end it; a key may hold any other sign.
        let ends = |c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '<' | '>');
        let (address, after) = address.split_at(address.find(ends).unwrap_or(address.len()));
        shown.push_str(before);
        push_address(&mut shown, address);
        rest = after;
    }
    shown.push_str(rest);
    shown
}

/// Position after the scheme of the next address.
fn next_address(text: &str) -> Option<usize> {
    ["http://", "https://"]
        .into_iter()
        .filter_map(|scheme| Some(text.find(scheme)? + scheme.len()))
        .min()
}

fn push_address(shown: &mut String, address: &str) {
    // No server sees what follows.
    let address = &address[..address.find('#').unwrap_or(address.len())];
    let (place, query) = match address.split_once('?') {
        Some((place, query)) => (place, Some(query)),
        None => (address, None),
    };
    let authority = &place[..place.find('/').unwrap_or(place.len())];
    match authority.rfind('@') {
        Some(at) => {
            shown.push_str(HIDDEN);
            shown.push_str(&place[at..]);
        }
        None => shown.push_str(place),
    }
    let Some(query) = query else { return };
    for (index, pair) in query.split('&').enumerate() {
        shown.push(if index == 0 { '?' } else { '&' });
        if let Some((name, _)) = pair.split_once('=') {
            shown.push_str(name);
            shown.push('=');
        }
        shown.push_str(HIDDEN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_a_secret_is_not_shown() {
        for (text, expected) in [
            ("nothing to hide", "nothing to hide"),
            ("https://x.example/mcp", "https://x.example/mcp"),
            ("https://x.example/mcp?key=s3cret", "https://x.example/mcp?key=…"),
            (
                "https://x.example/?a=s3cret&s3cret&b=",
                "https://x.example/?a=…&…&b=…",
            ),
            ("https://u:s3cret@x.example/a@b", "https://…@x.example/a@b"),
            ("https://x.example?key=s3cret#s3cret", "https://x.example?key=…"),
            ("https://x.example#s3cret", "https://x.example"),
            (
                "error for url (http://x.example/?key=s3cret): reset",
                "error for url (http://x.example/?key=… reset",
            ),
            (
                "'http://x.example/?key=s)cret', not 'https://y.example/?key=s3cret'",
                "'http://x.example/?key=…', not 'https://y.example/?key=…'",
            ),
        ] {
            assert_eq!(without_secrets(text), expected, "{text}");
        }
    }
}
