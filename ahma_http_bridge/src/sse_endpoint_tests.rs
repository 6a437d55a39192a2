use super::*;

#[test]
fn a_path_or_an_address_of_this_machine_and_nothing_else() {
    let table = [
        ("/mcp/sse", Ok("/mcp/sse")),
        ("/sse/", Ok("/sse")),
        ("/a-b/c_d.e~f", Ok("/a-b/c_d.e~f")),
        ("http://localhost:8888/mcp/sse", Ok("127.0.0.1:8888 /mcp/sse")),
        ("https://[::1]/sse", Ok("::1:443 /sse")),
        ("sse", Err("must begin with")),
        ("", Err("must begin with")),
        ("/", Err("the path is missing")),
        (
            "http://localhost:8888",
            Err("the path is missing; write a path such as /mcp/sse"),
        ),
        ("http://localhost:8888/", Err("the path is missing")),
        ("/{x}", Err("its parts")),
        ("/a/*rest", Err("its parts")),
        ("/a//b", Err("its parts")),
        ("/a/../b", Err("its parts")),
        ("/a b", Err("its parts")),
        ("/mcp", Err("/mcp is served already")),
        ("/mcp/", Err("/mcp is served already")),
        ("/healthz", Err("/healthz is served already")),
        ("/metrics", Err("/metrics is served already")),
        ("/.well-known/oauth-protected-resource", Err("is served already")),
        (
            "/.well-known/oauth-protected-resource/x",
            Err("is served already"),
        ),
        (
            "/.well-known/oauth-protected-resources",
            Ok("/.well-known/oauth-protected-resources"),
        ),
        ("http://localhost:8888/mcp", Err("/mcp is served already")),
        ("http://example.org/sse", Err("--allow-host")),
        ("http://localhost/sse?x=1", Err("write a path")),
        ("ftp://localhost/sse", Err("write a path")),
        ("http://", Err("write a path")),
    ];
    for (text, expected) in table {
        let shown = text.parse::<SseEndpoint>().map(|endpoint| match endpoint.listen {
            Some((host, port)) => format!("{host}:{port} {}", endpoint.path),
            None => endpoint.path.to_string(),
        });
        match (shown, expected) {
            (Ok(shown), Ok(expected)) => assert_eq!(shown, expected, "{text}"),
            (Err(error), Err(words)) => assert!(error.contains(words), "{text}: {error}"),
            (shown, expected) => panic!("{text}: {shown:?}, not {expected:?}"),
        }
    }
}
