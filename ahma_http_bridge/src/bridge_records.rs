//! Lines that the bridge writes to the audit trail, without credentials.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use ahma_common::envelope::{Envelope, RpcRequest, string_of};
use serde_json::{Map, Value, json};

use crate::audit::{CallRecord, shown_arguments};
use crate::auth::{AuthSettings, Principal};
use crate::bridge::Bridge;
use crate::redact::Redactor;
use crate::session::{ClientDetails, Session};

impl Bridge {
    /// The redactor, if messages are shown or written down: it must know accepted credentials.
    pub(crate) fn writes_messages(&self) -> Option<&Redactor> {
        (self.audit.records_calls() || self.settings.debug_echo).then_some(&self.redactor)
    }

    pub(crate) fn record_started(&self, address: SocketAddr) {
        let auth = match &self.settings.auth {
            AuthSettings::None => "none",
            AuthSettings::Token(_) => "token",
            AuthSettings::OAuth(_) => "oauth",
        };
        let fields = json!({
            "address": address.to_string(),
            "auth": auth,
            "version": env!("CARGO_PKG_VERSION"),
            "pid": std::process::id(),
        });
        self.audit.record("server_started", fields);
    }

    /// Records that a session began.
    pub(crate) fn record_opened(
        &self,
        session: &Session,
        initialize: &Envelope<'_>,
        address: Option<SocketAddr>,
    ) {
        let client = self.note_client(session, initialize, address);
        self.audit.record(
            "session_opened",
            json!({
                "principal": &*session.principal().name,
                "session": session.id(),
                "address": address.map(|address| address.to_string()),
                "client": client,
            }),
        );
    }

    /// Notes the client that `initialize` describes; returns the description as it may be written down.
    pub(crate) fn note_client(
        &self,
        session: &Session,
        initialize: &Envelope<'_>,
        address: Option<SocketAddr>,
    ) -> Option<Value> {
        let info = initialize.params().ok().and_then(|params| params.client_info);
        let client = info.map(|info| shown_arguments(info.get(), &self.redactor));
        session.set_client(ClientDetails {
            info: client.clone().unwrap_or_default(),
            address,
        });
        client
    }

    /// The audit record of a request, if calls are recorded.
    pub(crate) fn record_call(
        &self,
        request: RpcRequest<'_>,
        principal: &Principal,
        session: Option<&Session>,
    ) -> Option<CallRecord> {
        if !self.audit.records_calls() {
            return None;
        }
        let params = request.envelope.params().unwrap_or_default();
        let mut fields = Map::new();
        fields.insert("principal".to_owned(), (*principal.name).into());
        fields.insert("session".to_owned(), session.map(Session::id).into());
        fields.insert("method".to_owned(), request.method.into());
        if let Some(tool) = params.name.and_then(string_of) {
            fields.insert("tool".to_owned(), tool.into());
        }
        if let Some(arguments) = params.arguments {
            fields.insert(
                "arguments".to_owned(),
                shown_arguments(arguments.get(), &self.redactor),
            );
        }
        Some(CallRecord {
            audit: Arc::clone(&self.audit),
            fields,
            started: Instant::now(),
        })
    }

    /// Records an action of an operator.
    pub(crate) fn record_admin(&self, action: &'static str, operator: &Principal, mut fields: Value) {
        fields["principal"] = (*operator.name).into();
        fields["action"] = action.into();
        self.audit.record("admin", fields);
    }
}
