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
