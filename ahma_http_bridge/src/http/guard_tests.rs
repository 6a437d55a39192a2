use super::*;

fn guard(bound_to: &str) -> WebGuard {
    WebGuard::new(
        bound_to.parse().unwrap(),
        &[
            "Tools.example.com".to_owned(),
            "other.example.com:8443".to_owned(),
        ],
        &["https://app.example.com".to_owned()],
    )
}

#[test]
fn only_known_hosts_are_served() {
    let table = [
        ("127.0.0.1:1", "localhost:3000", true),
        ("127.0.0.1:1", "LOCALHOST", true),
        ("127.0.0.1:1", "localhost:abc", false),
        ("127.0.0.1:1", "localhost:99999", false),
        ("127.0.0.1:1", "127.0.0.1:9", true),
        ("127.0.0.1:1", "[::1]:3000", true),
        ("127.0.0.1:1", "tools.example.com", true),
        ("127.0.0.1:1", "tools.example.com:99", true),
        ("127.0.0.1:1", "other.example.com:8443", true),
        ("127.0.0.1:1", "other.example.com", false),
        ("127.0.0.1:1", "localhost.example.com", false),
        ("127.0.0.1:1", "localhost@evil.example", false),
        ("127.0.0.1:1", "127.0.0.1.nip.io", false),
        ("127.0.0.1:1", "192.168.1.4", false),
        ("0.0.0.0:1", "192.168.1.4:3000", true),
        ("[::]:1", "[2001:db8::1]", true),
        ("0.0.0.0:1", "evil.example", false),
    ];
    for (bound_to, host, expected) in table {
        let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static(host))]);
        let checked = guard(bound_to).check(Version::HTTP_11, &Uri::from_static("/mcp"), &headers);
        assert_eq!(checked.is_ok(), expected, "{host} at {bound_to}");
    }
    let none = guard("127.0.0.1:1").check(Version::HTTP_11, &Uri::from_static("/mcp"), &HeaderMap::new());
    assert!(none.is_err());
}

#[test]
fn a_request_names_one_host_and_one_origin() {
    let check = |version, uri, headers: &[(http::HeaderName, &'static str)]| {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name, HeaderValue::from_static(value));
        }
        let checked = guard("127.0.0.1:1").check(version, &Uri::from_static(uri), &map);
        checked.err().map(|refusal| refusal.status().as_u16())
    };
    let (old, new) = (Version::HTTP_11, Version::HTTP_2);
    let local = (HOST, "localhost");
    let origin = (ORIGIN, "http://localhost");
    for (version, uri, headers, expected) in [
        (old, "/mcp", vec![local.clone(), origin.clone()], None),
        (old, "/mcp", vec![local.clone(), local.clone()], Some(400)),
        (old, "/mcp", vec![local.clone(), (HOST, "evil.com")], Some(400)),
        (
            old,
            "/mcp",
            vec![local.clone(), origin.clone(), origin.clone()],
            Some(400),
        ),
        (old, "http://localhost/mcp", vec![local.clone()], None),
        (old, "http://evil.com/mcp", vec![local.clone()], Some(400)),
        (new, "https://localhost/mcp", vec![], None),
        (new, "https://LOCALHOST/mcp", vec![local.clone()], None),
        (new, "https://evil.com/mcp", vec![], Some(403)),
        (new, "https://evil.com/mcp", vec![local.clone()], Some(400)),
        (new, "https://localhost/mcp", vec![(HOST, "evil.com")], Some(400)),
    ] {
        assert_eq!(
            check(version, uri, &headers),
            expected,
            "{version:?} {uri} {headers:?}"
        );
    }
}

#[test]
fn origins_are_compared_whole() {
    let table = [
        ("http://localhost", true),
        ("http://localhost:5173", true),
        ("https://127.0.0.1:1", true),
        ("http://[::1]:8080", true),
        ("https://app.example.com", true),
        ("https://app.example.com:444", false),
        ("http://app.example.com", false),
        ("http://localhost.evil.com", false),
        ("http://localhost:80.evil.com", false),
        ("http://evil.com/localhost", false),
        ("http://user@localhost", false),
        ("file://", false),
        ("null", false),
        ("", false),
    ];
    for (origin, expected) in table {
        let headers = HeaderMap::from_iter([
            (HOST, HeaderValue::from_static("localhost")),
            (ORIGIN, HeaderValue::from_static(origin)),
        ]);
        let checked = guard("127.0.0.1:1").check(Version::HTTP_11, &Uri::from_static("/mcp"), &headers);
        assert_eq!(checked.is_ok(), expected, "{origin}");
    }
}

#[test]
fn only_hosts_that_can_be_addressed_can_be_allowed() {
    let table = [
        ("mcp.example.org", true),
        ("MCP.example.org:8443", true),
        ("my_host", true),
        ("192.168.1.4", true),
        ("[2001:db8::1]:80", true),
        ("http://x/y", false),
        ("x/y", false),
        ("x:", false),
        ("x:port", false),
        ("x:99999", false),
        ("user@x", false),
        ("*.example.org", false),
        ("2001:db8::1", false),
        ("[x]", false),
        ("a b", false),
        ("", false),
    ];
    for (text, expected) in table {
        let found = allowed_host(text);
        assert_eq!(found.is_ok(), expected, "{text}: {found:?}");
    }
}

#[test]
fn an_allowed_origin_is_written_as_browsers_do() {
    let table = [
        ("https://app.example.org", Some("https://app.example.org")),
        ("https://app.example.org/", Some("https://app.example.org")),
        ("https://App.example.org:443", Some("https://app.example.org")),
        ("http://app.example.org:8080", Some("http://app.example.org:8080")),
        (
            "https://b\u{fc}cher.example",
            Some("https://xn--bcher-kva.example"),
        ),
        ("http://[2001:db8::1]:1", Some("http://[2001:db8::1]:1")),
        ("chrome-extension://abc", Some("chrome-extension://abc")),
        ("x", None),
        ("app.example.org:443", None),
        ("https://app.example.org/path", None),
        ("https://app.example.org?x", None),
        ("https://user@app.example.org", None),
        ("https://*.example.org", None),
        ("file:///", None),
        ("null", None),
        ("*", None),
        ("", None),
    ];
    for (text, expected) in table {
        let found = allowed_origin(text);
        assert_eq!(found.as_deref().ok(), expected, "{text}: {found:?}");
    }
}
