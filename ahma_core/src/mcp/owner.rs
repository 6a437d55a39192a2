//! Which client a request comes from, behind a bridge where several share this server.
//!
//! The bridge writes the name into `_meta`, over whatever the client wrote there, and says when a client is gone. Where
//! there is no bridge nobody writes it, and all is the only client's. A message that comes after the answer names its
//! request, so that the bridge knows whom to tell.

use rmcp::model::{CustomNotification, NotificationMetaObject, RequestId, RequestMetaObject};
use serde_json::Value;

use crate::operation::Owner;

/// Names the client in the `_meta` of a request that comes from it, and of a notification that is for it alone.
const CLIENT: &str = "ahma/client";

/// Names the request that a notification belongs to.
const RELATED_REQUEST: &str = "ahma/relatedRequestId";

const CLIENT_GONE: &str = "notifications/ahma/client_gone";

pub(super) fn of(meta: &RequestMetaObject) -> Owner {
    meta.0.get(CLIENT).map(named).unwrap_or_default()
}

/// The client that a notification of the bridge says is gone.
pub(super) fn gone(notification: &CustomNotification) -> Option<Owner> {
    let params = notification.params.as_ref()?;
    (notification.method == CLIENT_GONE)
        .then(|| params.get("client").map(named))
        .flatten()
}

pub(super) fn related_to(request: &RequestId) -> NotificationMetaObject {
    let mut meta = NotificationMetaObject::new();
    if let Ok(id) = serde_json::to_value(request) {
        meta.insert(RELATED_REQUEST.to_owned(), id);
    }
    meta
}

/// Says which client a notification is for, where there are several.
pub(super) fn meant_for(owner: &Owner) -> Option<NotificationMetaObject> {
    let mut meta = NotificationMetaObject::new();
    meta.insert(CLIENT.to_owned(), owner.name()?.into());
    Some(meta)
}

fn named(name: &Value) -> Owner {
    name.as_str().map(Owner::named).unwrap_or_default()
}
