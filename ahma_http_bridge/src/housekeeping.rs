//! What is looked after once a second: changed files, memory and load; and once a minute a line in the log.

use std::sync::Arc;
use std::time::Duration;

use crate::bridge::Bridge;
use crate::tls::Certificate;

const TICK: Duration = Duration::from_secs(1);
const TICKS_PER_REPORT: u32 = 60;

pub(crate) async fn keep_house(bridge: Arc<Bridge>, certificate: Option<Arc<Certificate>>) {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut count = 0;
    let shutdown = bridge.shutdown.clone();
    while shutdown.run_until_cancelled(ticks.tick()).await.is_some() {
        let children: Vec<u32> = bridge
            .children()
            .iter()
            .filter_map(|child| child.process_id())
            .collect();
        let (house, certificate) = (Arc::clone(&bridge), certificate.clone());
        // Files are read on a thread that may block.
        let looked = tokio::task::spawn_blocking(move || {
            house.auth.refresh();
            house.pressure.sample(&children);
            if let Some(certificate) = certificate {
                certificate.refresh();
            }
        });
        if looked.await.is_err() {
            tracing::error!("housekeeping failed");
        }
        count += 1;
        if count % TICKS_PER_REPORT == 0 {
            report(&bridge);
        }
    }
}

fn report(bridge: &Bridge) {
    let now = bridge.gauges();
    tracing::info!(
        load_per_cpu = now.load_per_cpu,
        memory_bytes = now.memory_bytes,
        sessions = now.sessions,
        children = now.children,
        open_calls = now.open_calls,
        connections = now.connections,
        "in use"
    );
}
