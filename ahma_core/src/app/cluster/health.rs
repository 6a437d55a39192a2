//! The cluster as the bridge of a front end depends on it.

use std::sync::Arc;

use ahma_http_bridge::Dependency;
use tokio_util::sync::CancellationToken;

use crate::{
    app::{exit::Failure, settings::Settings},
    cluster::ClusterHealth,
    operation::Workforce,
};

#[derive(Debug)]
struct ClusterDependency(Arc<ClusterHealth>);

impl Dependency for ClusterDependency {
    fn obstacle(&self) -> Option<&'static str> {
        (!self.0.answers()).then_some("NATS does not answer")
    }

    fn metrics(&self) -> String {
        self.0.metrics()
    }
}

/// The cluster of a listener: for the bridge, and for the pages of the console.
pub(in crate::app) struct WatchedCluster {
    pub(in crate::app) dependency: Arc<dyn Dependency>,
    pub(in crate::app) workforce: Arc<dyn Workforce>,
}

/// Watches the cluster that the settings name, if they do.
pub(in crate::app) async fn watch(
    settings: &Settings,
    shutdown: &CancellationToken,
) -> Result<Option<WatchedCluster>, Failure> {
    let Some(choice) = &settings.cluster else {
        return Ok(None);
    };
    let link = choice.link_settings("listener");
    let opened = ClusterHealth::open(link, choice.lease, shutdown.clone()).await;
    let health = opened.map_err(|error| choice.unusable(&error))?;
    let health = Arc::new(health);
    Ok(Some(WatchedCluster {
        dependency: Arc::new(ClusterDependency(Arc::clone(&health))),
        workforce: health,
    }))
}
