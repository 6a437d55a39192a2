//! The cluster as a dependency of a front end's bridge.

use std::sync::Arc;

use ahma_http_bridge::Dependency;
use tokio_util::sync::CancellationToken;

use crate::{
    app::{exit::Failure, settings::Settings},
    cluster::ClusterHealth,
};

impl Dependency for ClusterHealth {
    fn obstacle(&self) -> Option<&'static str> {
        (!self.answers()).then_some("NATS does not answer")
    }

    fn metrics(&self) -> String {
        self.metrics()
    }
}

/// Watches the cluster that the settings name, if they do.
pub(in crate::app) async fn watch(
    settings: &Settings,
    shutdown: &CancellationToken,
) -> Result<Option<Arc<ClusterHealth>>, Failure> {
    let Some(choice) = &settings.cluster else {
        return Ok(None);
    };
    let link = choice.link_settings("listener");
    let opened = ClusterHealth::open(link, choice.lease, shutdown.clone()).await;
    let health = opened.map_err(|error| choice.unusable(&error))?;
    Ok(Some(Arc::new(health)))
}
