//! The pool as an operator looks at it: the settings of its streams, their copies, and the workers that answer.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use futures::StreamExt as _;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout_at};

use crate::{
    link::{Link, LinkError},
    roster::Beat,
    streams::{MIN_KEEP, PoolLimits, StreamState, configs, nanos},
};

/// Settings that the operator chooses.
const CHOSEN: [&str; 4] = ["num_replicas", "max_age", "max_bytes", "max_msgs"];

/// One stream of a pool.
#[derive(Debug, Clone)]
pub struct StreamReport {
    pub name: String,
    pub state: StreamState,
    /// Bytes and messages that it may take.
    pub max_bytes: Option<u64>,
    pub max_messages: Option<u64>,
    pub copies: Copies,
    /// Settings that are not as `create` makes them.
    pub faults: Vec<String>,
}

/// The copies of a stream on the servers of a NATS cluster.
#[derive(Debug, Clone, Default)]
pub struct Copies {
    pub wanted: u64,
    /// Servers whose copy is not up to date.
    pub behind: Vec<String>,
}

/// A worker that answered.
#[derive(Debug, Clone)]
pub struct Heard {
    pub beat: Beat,
    /// Milliseconds that its clock is ahead of ours, with the time that its answer took. Older versions do not tell.
    pub clock_ahead_ms: Option<i64>,
}

/// A beat on its way.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SentBeat {
    #[serde(flatten)]
    beat: Beat,
    /// Milliseconds since 1970 by the clock of the worker. Nothing is decided by it.
    #[serde(default)]
    sent_at: Option<i64>,
}

impl SentBeat {
    pub(crate) fn now(beat: Beat) -> Self {
        Self {
            beat,
            sent_at: Some(wall_clock()),
        }
    }
}

/// Every stream of the pool, as the server has it.
pub async fn inspect(link: &Link) -> Result<Vec<StreamReport>, LinkError> {
    let mut reports = Vec::new();
    for (name, expected) in configs(link.pool(), PoolLimits::default()) {
        let found = link.api(&format!("STREAM.INFO.{name}"), &json!({})).await?;
        reports.push(report(name, &expected, found));
    }
    Ok(reports)
}

/// The workers that answer within this time, by name.
pub async fn roll_call(link: &Link, within: Duration) -> Result<Vec<Heard>, LinkError> {
    let deadline = Instant::now() + within;
    let all = link.pool().beat_subject("*");
    let mut beats = link.subscribe(all.clone()).await?;
    link.publish(link.pool().roll_call_subject(), Default::default())
        .await;
    let mut heard = BTreeMap::new();
    while let Ok(Some(message)) = timeout_at(deadline, beats.next()).await {
        if let Ok(SentBeat { beat, sent_at }) = serde_json::from_slice(&message.payload) {
            let clock_ahead_ms = sent_at.map(|sent_at| sent_at.saturating_sub(wall_clock()));
            heard.insert(beat.worker.clone(), Heard { beat, clock_ahead_ms });
        }
    }
    if heard.is_empty() && link.is_denied(&all) {
        return Err(LinkError::Denied { subject: all });
    }
    Ok(heard.into_values().collect())
}

#[derive(Deserialize)]
struct Found {
    config: Map<String, Value>,
    state: StreamState,
    #[serde(default)]
    cluster: Option<Group>,
}

/// The servers that have a stream.
#[derive(Deserialize)]
struct Group {
    #[serde(default)]
    replicas: Vec<Member>,
}

#[derive(Deserialize)]
struct Member {
    name: String,
    #[serde(default)]
    current: bool,
    #[serde(default)]
    offline: bool,
}

fn report(name: String, expected: &Value, found: Found) -> StreamReport {
    let number = |key: &str| found.config.get(key).and_then(Value::as_u64);
    let mut faults = Vec::new();
    for (key, wanted) in expected.as_object().into_iter().flatten() {
        // What is off may be left out.
        let is = found.config.get(key).unwrap_or(&Value::Bool(false));
        if !CHOSEN.contains(&key.as_str()) && is != wanted {
            faults.push(format!("{key} is {is} and should be {wanted}"));
        }
    }
    if expected["retention"] == "workqueue" {
        if found.state.consumers == 0 {
            faults.push("its consumer is missing".to_owned());
        }
    } else if number("max_age").is_some_and(|age| age != 0 && age < nanos(MIN_KEEP)) {
        faults.push("max_age is less than four hours".to_owned());
    }
    let members = found.cluster.iter().flat_map(|group| &group.replicas);
    let behind = members.filter(|member| member.offline || !member.current);
    StreamReport {
        copies: Copies {
            wanted: number("num_replicas").unwrap_or(1),
            behind: behind.map(|member| member.name.clone()).collect(),
        },
        max_bytes: number("max_bytes"),
        max_messages: number("max_msgs"),
        name,
        state: found.state,
        faults,
    }
}

fn wall_clock() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
