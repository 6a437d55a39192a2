use http::HeaderValue;

use super::*;

#[test]
fn the_accept_header_decides() {
    let table: [(&[&str], Option<Wanted>); 11] = [
        (&[], Some(Wanted::Json)),
        (&[""], Some(Wanted::Json)),
        (&["*/*"], Some(Wanted::Json)),
        (&["application/*"], Some(Wanted::Json)),
        (&["application/json"], Some(Wanted::Json)),
        (
            &["application/json, text/event-stream"],
            Some(Wanted::EventStream),
        ),
        (
            &["application/json", "Text/Event-Stream; q=0.5"],
            Some(Wanted::EventStream),
        ),
        (&["application/json, text/event-stream;q=0"], Some(Wanted::Json)),
        (&["text/event-stream"], Some(Wanted::EventStream)),
        (&["text/html"], None),
        (&["application/json;q=0.0"], None),
    ];
    for (values, expected) in table {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(ACCEPT, HeaderValue::from_str(value).unwrap());
        }
        assert_eq!(wanted(&headers).ok(), expected, "{values:?}");
    }
}

#[test]
fn only_json_bodies_are_read() {
    let table = [
        (Some("application/json"), true),
        (Some("Application/JSON; charset=utf-8"), true),
        (Some("text/plain"), false),
        (Some("application/jsonp"), false),
        (None, false),
    ];
    for (value, expected) in table {
        let mut headers = HeaderMap::new();
        if let Some(value) = value {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(value));
        }
        assert_eq!(require_json(&headers).is_ok(), expected, "{value:?}");
    }
    let mut headers = HeaderMap::new();
    headers.append(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.append(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    assert!(require_json(&headers).is_err(), "two readers could disagree");
}
