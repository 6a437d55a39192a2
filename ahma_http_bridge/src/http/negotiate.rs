//! Content negotiation: the headers of a request, and the form of its response.

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};

use super::refusal::Refusal;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Json,
    EventStream,
}

/// `text/event-stream` if the client takes it, else JSON, which is also for a client that does not say.
pub(crate) fn wanted(headers: &HeaderMap) -> Result<Wanted, Refusal> {
    let (mut json, mut events, mut any) = (false, false, false);
    for value in headers.get_all(ACCEPT) {
        let Ok(value) = value.to_str() else { continue };
        for range in value.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default();
            let refused =
                parts.any(|part| matches!(part.split_once('='), Some(("q" | "Q", q)) if is_zero(q)));
            if media.is_empty() || refused {
                any |= refused;
                continue;
            }
            any = true;
            events |= media.eq_ignore_ascii_case("text/event-stream");
            json |=
                media.eq_ignore_ascii_case("application/json") || media == "*/*" || media == "application/*";
        }
    }
    match (any, events, json) {
        (_, true, _) => Ok(Wanted::EventStream),
        (_, _, true) | (false, ..) => Ok(Wanted::Json),
        _ => Err(Refusal::new(
            StatusCode::NOT_ACCEPTABLE,
            -32000,
            "the answer is application/json or text/event-stream; the Accept header allows neither",
        )),
    }
}

fn is_zero(quality: &str) -> bool {
    quality.trim().parse::<f32>() == Ok(0.0)
}

/// Refuses a body that does not claim to be JSON: a web page may send others without asking first.
pub(crate) fn require_json(headers: &HeaderMap) -> Result<(), Refusal> {
    let media = single(headers, CONTENT_TYPE.as_str())?.unwrap_or_default();
    let media = media.split(';').next().unwrap_or_default().trim();
    if media.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(Refusal::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        -32000,
        "send Content-Type: application/json",
    ))
}

/// The value of a header, if there is exactly one and it is text.
pub(crate) fn single<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(Refusal::bad_request(format!(
            "the {name} header is given more than once"
        )));
    }
    value
        .to_str()
        .map(Some)
        .map_err(|_| Refusal::bad_request(format!("the {name} header is not plain text")))
}

#[cfg(test)]
#[path = "negotiate_tests.rs"]
mod tests;
