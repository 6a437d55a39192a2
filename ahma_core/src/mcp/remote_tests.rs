use ahma_http_mcp_client::{ConnectReport, Step};

use super::*;

fn ready(tools: &[&'static str]) -> ServerState {
    ServerState::Ready {
        report: Arc::new(ConnectReport {
            step: Step::StreamableHttp,
            protocol: String::new(),
            attempts: Vec::new(),
        }),
        tools: (tools.iter())
            .map(|name| Tool::new(*name, "a tool", Arc::default()))
            .collect(),
    }
}

fn target(offer: &Offer, name: &str) -> Option<(String, String)> {
    let mounted = offer.mounted.get(name)?;
    Some((mounted.server.clone(), mounted.tool.clone()))
}

#[test]
fn a_name_goes_on_meaning_what_it_meant() {
    let mut offer = Offer::default();
    let of = |server: &str, tool: &str| Some((server.to_owned(), tool.to_owned()));
    let mut states = Snapshot::from([("a_b".to_owned(), ready(&["c"]))]);
    offer.take_in(&states);
    assert_eq!(target(&offer, "a_b_c"), of("a_b", "c"));

    states.insert("a".to_owned(), ready(&["b_c"]));
    offer.take_in(&states);
    assert_eq!(target(&offer, "a_b_c"), of("a_b", "c"), "first come");
    assert_eq!(offer.clashes["a"], ["b_c"]);

    states.insert("a_b".to_owned(), ready(&["d"]));
    offer.take_in(&states);
    assert_eq!(target(&offer, "a_b_c"), of("a", "b_c"), "the other has gone");
}

#[test]
fn a_server_that_is_tried_again_is_listed_only_if_it_was() {
    let connecting = || ServerState::Connecting { problem: None };
    let refused = ServerState::LoginRequired {
        link: None,
        reason: String::new(),
    };
    let mut offer = Offer::default();
    let mut listed_after = |state: ServerState| {
        offer.take_in(&Snapshot::from([("s".to_owned(), state)]));
        offer.mounted["s_t"].is_listed
    };
    assert!(listed_after(ready(&["t"])));
    assert!(listed_after(connecting()));
    assert!(!listed_after(refused));
    assert!(!listed_after(connecting()));
    assert!(listed_after(ready(&["t"])));
}

#[test]
fn a_remote_server_is_told_what_the_client_says_and_nothing_else() {
    let meta =
        |value: serde_json::Value| -> RequestMetaObject { serde_json::from_value(value).expect("an object") };
    let said = meta(serde_json::json!({
        "progressToken": 1,
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "ahma/client": "4f",
        "example.com/ahma": "kept",
    }));
    assert_eq!(
        passed_on(&said),
        meta(serde_json::json!({"example.com/ahma": "kept"}))
    );
}
