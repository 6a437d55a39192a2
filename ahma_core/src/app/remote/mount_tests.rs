use super::*;

#[test]
fn our_own_listener_is_recognised_by_every_name_of_this_machine() {
    let listener: SocketAddr = "127.0.0.1:3000".parse().expect("an address");
    let wide: SocketAddr = "192.168.1.5:443".parse().expect("an address");
    for (url, listener, is_ours) in [
        ("http://127.0.0.1:3000/mcp", listener, true),
        ("http://localhost:3000/mcp/sse", listener, true),
        ("http://[::1]:3000/mcp", listener, true),
        ("http://127.0.0.1:3001/mcp", listener, false),
        ("http://example.com:3000/mcp", listener, false),
        ("https://192.168.1.5/mcp", wide, true),
        ("https://192.168.1.6/mcp", wide, false),
    ] {
        let url = url.parse().expect("an address");
        assert_eq!(leads_to(&url, listener), is_ours, "{url}");
    }
}
