//! Says in a request which client it comes from, for a child that keeps several apart and may say in turn whom it means.
//!
//! The name goes into `_meta`, in place of one that the client wrote there itself. The child hears, too, when a client is
//! gone, so that it can end what that client started. A client that says so itself is not passed on: it could name another.

use ahma_common::contract::{CLIENT_GONE, META_CLIENT, OWN_PREFIX};
use ahma_common::envelope::{Edit, Envelope, Meta, Params, string_of};
use serde_json::value::RawValue;

use super::pending::ClientId;

/// The edit that writes the name. A request without `params` is about nothing that belongs to a client.
pub(super) fn edit(
    envelope: &Envelope<'_>,
    params: &Params<'_>,
    meta: &Meta<'_>,
    client: ClientId,
) -> Option<Edit> {
    if let Some(given) = meta.client {
        return Some(Edit {
            span: envelope.span(given),
            text: format!(r#""{client}""#),
        });
    }
    let member = format!(r#""{META_CLIENT}":"{client}""#);
    if let Some(null) = params.null_meta() {
        return Some(Edit {
            span: envelope.span(null),
            text: format!("{{{member}}}"),
        });
    }
    let (object, member) = match params.meta_object() {
        Some(meta) => (meta, member),
        None => (envelope.params_object()?, format!(r#""_meta":{{{member}}}"#)),
    };
    let inside = object.get().get(1..)?.trim_ascii_start();
    let comma = if inside.starts_with('}') { "" } else { "," };
    let start = envelope.span(object).start + 1;
    Some(Edit {
        span: start..start,
        text: format!("{member}{comma}"),
    })
}

/// The client that a child calls by the name it was given here.
pub(crate) fn named(name: &RawValue) -> Option<ClientId> {
    string_of(name)?.parse().ok()
}

/// True if only the bridge may send this method to a child.
pub(crate) fn is_for_the_bridge(method: &str) -> bool {
    let method = method.strip_prefix("notifications/").unwrap_or(method);
    method.starts_with(OWN_PREFIX)
}

/// The notification that a client is gone.
pub(super) fn gone(client: ClientId) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{CLIENT_GONE}","params":{{"client":"{client}"}}}}"#)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use ahma_common::envelope::splice;

    #[test]
    fn the_name_is_written_over_what_the_client_wrote() {
        for (params, expected) in [
            (json!({}), json!({ "_meta": { "ahma/client": "7" } })),
            (
                json!({ "name": "x" }),
                json!({ "name": "x", "_meta": { "ahma/client": "7" } }),
            ),
            (
                json!({ "_meta": null, "name": "x" }),
                json!({ "name": "x", "_meta": { "ahma/client": "7" } }),
            ),
            (json!({ "_meta": {} }), json!({ "_meta": { "ahma/client": "7" } })),
            (
                json!({ "_meta": { "progressToken": 1 } }),
                json!({ "_meta": { "progressToken": 1, "ahma/client": "7" } }),
            ),
            (
                json!({ "_meta": { "ahma/client": "1" } }),
                json!({ "_meta": { "ahma/client": "7" } }),
            ),
        ] {
            let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
            for text in [request.to_string(), format!("{request:#}")] {
                let envelope = Envelope::parse(text.as_bytes()).unwrap();
                let params = envelope.params().unwrap();
                let edit = edit(&envelope, &params, &params.meta().unwrap(), 7).unwrap();
                let named = splice(&text, vec![edit]);
                let keys = named.windows(7).filter(|found| found == b"\"_meta\"");
                assert_eq!(keys.count(), 1, "{text}");
                let named: Value = serde_json::from_slice(&named).unwrap();
                assert_eq!(named["params"], expected, "{text}");
            }
        }
    }
}
