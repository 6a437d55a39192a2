//! One request over a live connection: its progress goes to a sink, and giving it up cancels it at the server.

use rmcp::{
    RoleClient,
    model::{
        CancelledNotification, CancelledNotificationParam, ClientRequest, ListToolsRequest,
        PaginatedRequestParams, ProgressNotificationParam, RequestId, ResultType, ServerResult, Tool,
    },
    service::{Peer, PeerRequestOptions, ServiceError},
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::progress::ProgressRoutes;

/// A server that pages on without end must not fill our memory.
const MAX_PAGES: usize = 200;

/// Sends `request` and waits. Cancelling, or dropping the future, cancels it at the server.
pub(crate) async fn request(
    peer: &Peer<RoleClient>,
    routes: &ProgressRoutes,
    request: ClientRequest,
    progress: Option<mpsc::Sender<ProgressNotificationParam>>,
    cancel: &CancellationToken,
) -> Result<ServerResult, ServiceError> {
    let mut handle = peer
        .send_request_with_option(request, PeerRequestOptions::no_options())
        .await?;
    let _route = progress.map(|sink| routes.add(handle.progress_token.clone(), sink));
    let mut abandoned = Abandoned {
        peer,
        id: Some(handle.id.clone()),
    };
    let answer = tokio::select! {
        answer = &mut handle.rx => Some(answer),
        () = cancel.cancelled() => None,
    };
    match answer {
        Some(answer) => {
            abandoned.id = None;
            answer
                .map_err(|_| ServiceError::TransportClosed)?
                .map(with_result_type)
        }
        None => Err(ServiceError::Cancelled {
            reason: Some("cancelled by the client".to_owned()),
        }),
    }
}

/// All tools of a server, asked for page by page and never from a cache.
pub(crate) async fn list_tools(
    peer: &Peer<RoleClient>,
    routes: &ProgressRoutes,
    cancel: &CancellationToken,
) -> Result<Vec<Tool>, ServiceError> {
    if peer
        .peer_info()
        .is_some_and(|info| info.capabilities.tools.is_none())
    {
        return Ok(Vec::new());
    }
    let mut tools = Vec::new();
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let params = cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        let page = ListToolsRequest {
            params,
            ..Default::default()
        };
        let answer = request(peer, routes, ClientRequest::ListToolsRequest(page), None, cancel).await?;
        let ServerResult::ListToolsResult(page) = answer else {
            return Err(ServiceError::UnexpectedResponse);
        };
        tools.extend(page.tools);
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(tools);
        }
    }
    tracing::warn!(
        tools = tools.len(),
        "the server's tool list does not end; the rest is left out"
    );
    Ok(tools)
}

/// Legacy servers do not name the type of a result, and modern clients insist on it; rmcp takes it away again for
/// legacy ones.
fn with_result_type(mut result: ServerResult) -> ServerResult {
    let result_type = match &mut result {
        ServerResult::CompleteResult(result) => &mut result.result_type,
        ServerResult::GetPromptResult(result) => &mut result.result_type,
        ServerResult::ListPromptsResult(result) => &mut result.result_type,
        ServerResult::ListResourcesResult(result) => &mut result.result_type,
        ServerResult::ListResourceTemplatesResult(result) => &mut result.result_type,
        ServerResult::ReadResourceResult(result) => &mut result.result_type,
        ServerResult::ListToolsResult(result) => &mut result.result_type,
        ServerResult::CallToolResult(result) => &mut result.result_type,
        _ => return result,
    };
    result_type.get_or_insert(ResultType::COMPLETE);
    result
}

/// Cancels the request at the server when the answer is no longer waited for.
struct Abandoned<'a> {
    peer: &'a Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let peer = self.peer.clone();
        let params = CancelledNotificationParam::new(Some(id), Some("no longer needed".to_owned()));
        tokio::spawn(async move {
            // The connection may be gone, and the request with it.
            let _ = peer
                .send_notification(CancelledNotification::new(params).into())
                .await;
        });
    }
}
