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
