//! Names the client of a request, its program, its principal and its tools, for a child that serves several clients and may
//! address one of them in turn.
//!
//! The names go into `_meta`, in place of those that the client wrote there itself. When a client is gone the child is
//! notified, so that it can end what that client started. Such a notification of a client is not passed on: it could name
//! another.

use ahma_common::contract::{CLIENT_GONE, META_CLIENT, META_PRINCIPAL, META_PROGRAM, META_TOOLS, OWN_PREFIX};
use ahma_common::envelope::{Edit, Envelope, Meta, Params, string_of};
use serde_json::Value;
use serde_json::value::RawValue;

use super::pending::ClientId;

/// The client of a request, as a child is told.
#[derive(Debug, Clone, Copy)]
pub(super) struct Names<'a> {
    pub(super) client: ClientId,
    pub(super) principal: Option<&'a str>,
    /// Name that the client's program gives itself.
    pub(super) program: Option<&'a str>,
    /// Patterns of the tools it is limited to.
    pub(super) tools: Option<&'a str>,
}

impl Names<'_> {
    /// The edits that write the names; none if there is no place for a limit. A request without `params` is about nothing
    /// that belongs to a client, but it may list tools.
    pub(super) fn edits(
        self,
        envelope: &Envelope<'_>,
        params: &Params<'_>,
        meta: &Meta<'_>,
    ) -> Option<Vec<Edit>> {
        let (mut edits, mut members) = (Vec::new(), Vec::new());
        let mut write = |key: &str, given: Option<&RawValue>, value: Option<String>| match (given, value) {
            // A name that the bridge has not given is none.
            (Some(given), value) => edits.push(envelope.edit(given, value.unwrap_or("null".to_owned()))),
            (None, Some(value)) => members.push(format!(r#""{key}":{value}"#)),
            (None, None) => {}
        };
        write(META_CLIENT, meta.client, Some(format!(r#""{}""#, self.client)));
        let text = |text: &str| Value::from(text).to_string();
        write(META_PRINCIPAL, meta.principal, self.principal.map(text));
        write(META_PROGRAM, meta.program, self.program.map(text));
        write(META_TOOLS, meta.tools, self.tools.map(text));
        if !members.is_empty() {
            match insertion(envelope, params, &members.join(",")) {
                Some(edit) => edits.push(edit),
                None if self.tools.is_some() => edits.push(new_params(envelope, &members.join(","))?),
                None => {}
            }
        }
        Some(edits)
    }
}

/// The edit that adds `params` to a request that has none.
fn new_params(envelope: &Envelope<'_>, members: &str) -> Option<Edit> {
    let start = envelope.text().find('{').filter(|_| envelope.lacks_params())? + 1;
    Some(Edit {
        span: start..start,
        text: format!(r#""params":{{"_meta":{{{members}}}}},"#),
    })
}

/// The edit that adds these members to `_meta`.
fn insertion(envelope: &Envelope<'_>, params: &Params<'_>, members: &str) -> Option<Edit> {
    if let Some(null) = params.null_meta() {
        return Some(envelope.edit(null, format!("{{{members}}}")));
    }
    let (object, members) = match params.meta_object() {
        Some(meta) => (meta, members.to_owned()),
        None => (envelope.params_object()?, format!(r#""_meta":{{{members}}}"#)),
    };
    let inside = object.get().get(1..)?.trim_ascii_start();
    let comma = if inside.starts_with('}') { "" } else { "," };
    let start = envelope.span(object).start + 1;
    Some(Edit {
        span: start..start,
        text: format!("{members}{comma}"),
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
pub(super) fn gone(client: ClientId, reason: &str) -> String {
    let reason = Value::from(reason);
    format!(
        r#"{{"jsonrpc":"2.0","method":"{CLIENT_GONE}","params":{{"client":"{client}","reason":{reason}}}}}"#
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use ahma_common::envelope::splice;

    /// The `params` that a child is sent for those of a client.
    fn check(params: Value, principal: Option<&str>, expected: Value) {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        for text in [request.to_string(), format!("{request:#}")] {
            let envelope = Envelope::parse(text.as_bytes()).unwrap();
            let params = envelope.params().unwrap();
            let names = Names {
                client: 7,
                principal,
                program: None,
                tools: None,
            };
            let edits = names.edits(&envelope, &params, &params.meta().unwrap()).unwrap();
            let named = splice(&text, edits);
            let keys = named.windows(7).filter(|found| found == b"\"_meta\"");
            assert_eq!(keys.count(), 1, "{text}");
            let named: Value = serde_json::from_slice(&named).unwrap();
            assert_eq!(named["params"], expected, "{text}");
        }
    }

    #[test]
    fn the_names_are_written_over_what_the_client_wrote() {
        let both = json!({ "ahma/client": "7", "ahma/principal": "a\"b" });
        for (params, expected) in [
            (json!({}), json!({ "_meta": both })),
            (json!({ "name": "x" }), json!({ "name": "x", "_meta": both })),
            (
                json!({ "_meta": null, "name": "x" }),
                json!({ "name": "x", "_meta": both }),
            ),
            (json!({ "_meta": {} }), json!({ "_meta": both })),
            (
                json!({ "_meta": { "progressToken": 1 } }),
                json!({ "_meta": { "progressToken": 1, "ahma/client": "7", "ahma/principal": "a\"b" } }),
            ),
            (
                json!({ "_meta": { "ahma/client": "1" } }),
                json!({ "_meta": both }),
            ),
            (
                json!({ "_meta": { "ahma/principal": "root" } }),
                json!({ "_meta": both }),
            ),
            (
                json!({ "_meta": { "ahma/principal": "root", "ahma/client": "1" } }),
                json!({ "_meta": both }),
            ),
            // Of a key that is there twice the child would read the last.
            (
                json!({ "_meta": { "ahma/principal": null, "ahma/client": null } }),
                json!({ "_meta": both }),
            ),
        ] {
            check(params, Some("a\"b"), expected);
        }
    }

    #[test]
    fn a_client_without_credentials_cannot_name_itself_a_principal() {
        check(json!({}), None, json!({ "_meta": { "ahma/client": "7" } }));
        check(
            json!({ "_meta": { "ahma/principal": "root" } }),
            None,
            json!({ "_meta": { "ahma/client": "7", "ahma/principal": null } }),
        );
    }

    #[test]
    fn a_limit_reaches_the_child_whatever_the_client_writes() {
        let limited = |request: &str| {
            let envelope = Envelope::parse(request.as_bytes()).unwrap();
            let params = envelope.params().unwrap();
            let names = Names {
                client: 7,
                principal: None,
                program: Some("editor"),
                tools: Some("git_*"),
            };
            let edits = names.edits(&envelope, &params, &params.meta().unwrap())?;
            Some(serde_json::from_slice::<Value>(&splice(request, edits)).unwrap())
        };
        for rest in [
            "",
            r#","params":{}"#,
            r#","params":{"_meta":null}"#,
            r#","params":{"_meta":{"ahma/tools":"*","ahma/program":"bank"}}"#,
            r#","params":{"_meta":{"ahma/tools":null,"ahma/client":"1"}}"#,
        ] {
            let sent = limited(&format!(
                r#" {{"jsonrpc":"2.0","id":1,"method":"tools/list"{rest}}}"#
            ))
            .unwrap();
            assert_eq!(
                sent["params"]["_meta"],
                json!({ "ahma/client": "7", "ahma/program": "editor", "ahma/tools": "git_*" }),
                "{rest}"
            );
        }
        for params in ["null", "[]", "1"] {
            let request = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{params}}}"#);
            assert_eq!(limited(&request), None, "{params}");
        }
    }
}
