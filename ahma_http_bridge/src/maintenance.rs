//! Work done once a second: changed files, memory and load; and once a minute a line in the log. Memory and
//! load are read from every process below this one, so without limits and metrics that is done for the log alone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::bridge::Bridge;
use crate::settings::BridgeSettings;
use crate::tls::Certificate;

const TICK: Duration = Duration::from_secs(1);
const TICKS_PER_REPORT: u32 = 60;

pub(crate) async fn maintain(bridge: Arc<Bridge>, certificate: Option<Arc<Certificate>>) {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut count = 0;
    let mut last = (Instant::now(), bridge.pressure.sample().cpu);
    let shutdown = bridge.shutdown.clone();
    while shutdown.run_until_cancelled(ticks.tick()).await.is_some() {
        count += 1;
        let is_reported = count % TICKS_PER_REPORT == 0;
        let is_sampled = is_reported || watches_pressure(&bridge.settings);
        let (house, certificate) = (Arc::clone(&bridge), certificate.clone());
        // Files are read on a thread that may block.
        let looked = tokio::task::spawn_blocking(move || {
            house.auth.refresh();
            if is_sampled {
                house.pressure.refresh();
            }
            if let Some(certificate) = certificate {
                certificate.refresh();
            }
        });
        if looked.await.is_err() {
            tracing::error!("housekeeping failed");
        }
        bridge.end_moved();
        if is_reported {
            last = report(&bridge, last);
        }
    }
}

/// True if the figures are needed at any time.
fn watches_pressure(settings: &BridgeSettings) -> bool {
    let limits = &settings.limits;
    settings.metrics || limits.memory_bytes.is_some() || limits.load_per_cpu.is_some()
}

/// Logs what is in use; returns the time and the processor time used until then, for the next report.
fn report(bridge: &Bridge, (before, used_before): (Instant, Duration)) -> (Instant, Duration) {
    let (at, used) = (Instant::now(), bridge.pressure.sample().cpu);
    let share = used.saturating_sub(used_before).as_secs_f64() / (at - before).as_secs_f64();
    let now = bridge.gauges();
    tracing::info!(
        cpu_percent = (share * 100.0).round(),
        load_per_cpu = (now.load_per_cpu * 1000.0).round() / 1000.0,
        memory_bytes = now.memory_bytes,
        sessions = now.sessions,
        children = now.children,
        open_calls = now.open_calls,
        connections = now.connections,
        "in use"
    );
    (at, used)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_load_are_watched_for_limits_and_for_metrics() {
        let check = |adjust: fn(&mut BridgeSettings), expected: bool| {
            let mut settings = BridgeSettings::new("/".into());
            adjust(&mut settings);
            assert_eq!(watches_pressure(&settings), expected, "{settings:?}");
        };
        check(|_| {}, false);
        check(|settings| settings.metrics = true, true);
        check(|settings| settings.limits.memory_bytes = Some(1), true);
        check(|settings| settings.limits.load_per_cpu = Some(1.0), true);
    }
}
