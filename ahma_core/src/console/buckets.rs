//! The work of the last minutes, cut into stretches of time for plots.

use std::time::SystemTime;

use super::machine::{INTERVAL, SAMPLES};
use crate::history::Span;

/// For each stretch of time: how many operations ran at once at its end, and how long those took that ended in it.
pub(super) fn buckets(spans: &[Span], now: SystemTime) -> (Vec<Option<f64>>, Vec<Option<f64>>) {
    let mut ends = vec![Vec::new(); SAMPLES];
    for span in spans {
        let Some(end) = span.ended_at else { continue };
        let ago = now.duration_since(end).unwrap_or_default();
        let index = (ago.as_secs_f64() / INTERVAL.as_secs_f64()) as usize;
        if let Some(bucket) = SAMPLES
            .checked_sub(index + 1)
            .and_then(|index| ends.get_mut(index))
        {
            bucket.push(
                end.duration_since(span.started_at)
                    .unwrap_or_default()
                    .as_secs_f64(),
            );
        }
    }
    let running = (0..SAMPLES).map(|index| {
        let ago = INTERVAL * (SAMPLES - 1 - index) as u32;
        let at = now.checked_sub(ago).unwrap_or(now);
        let runs = |span: &&Span| span.started_at <= at && span.ended_at.is_none_or(|end| end > at);
        Some(spans.iter().filter(runs).count() as f64)
    });
    let latency = ends.into_iter().map(|mut durations| {
        durations.sort_by(f64::total_cmp);
        durations.get(durations.len() / 2).copied()
    });
    (running.collect(), latency.collect())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn time_is_cut_into_stretches_up_to_now() {
        let now = SystemTime::now();
        let ago = |seconds: u64| now - Duration::from_secs(seconds);
        let spans = [
            Span {
                started_at: ago(100),
                ended_at: Some(ago(25)),
            },
            Span {
                started_at: ago(5),
                ended_at: Some(ago(1)),
            },
            Span {
                started_at: ago(15),
                ended_at: None,
            },
            Span {
                started_at: ago(9_000),
                ended_at: Some(ago(8_000)),
            },
        ];
        let (running, latency) = buckets(&spans, now);
        assert_eq!((running.len(), latency.len()), (SAMPLES, SAMPLES));
        // 40, 30, 20, 10 and no seconds ago.
        assert_eq!(running[SAMPLES - 5..], [1.0, 1.0, 0.0, 1.0, 1.0].map(Some));
        assert_eq!(latency[SAMPLES - 4..], [None, Some(75.0), None, Some(4.0)]);
    }
}
