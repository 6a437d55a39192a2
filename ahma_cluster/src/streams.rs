//! The streams of a pool and their settings.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    link::{Link, LinkError},
    names::{Pool, QUEUE_CONSUMER},
};

/// Limits of a pool, which the operator chooses.
#[derive(Debug, Clone, Copy)]
pub struct PoolLimits {
    /// Copies of every stream, on as many servers.
    pub replicas: u8,
    /// Operations that may wait.
    pub queue: u64,
    /// Output of all operations together.
    pub output_bytes: u64,
    /// Time for which ended operations are known.
    pub keep: Duration,
}

impl Default for PoolLimits {
    fn default() -> Self {
        Self {
            replicas: 1,
            queue: 10_000,
            output_bytes: 8 << 30,
            keep: Duration::from_secs(48 * 3600),
        }
    }
}

/// Jobs are kept for less time than the log: an old job that met a forgotten log could run a second time.
pub(crate) const JOBS_AGE: Duration = Duration::from_secs(3600);
pub(crate) const MIN_KEEP: Duration = Duration::from_secs(4 * 3600);

/// A job that its worker does not acknowledge within this time is handed to another.
const ACK_WAIT: Duration = Duration::from_secs(15);

/// Room for half a million operations. The server reserves it on its disk.
const LOG_BYTES: u64 = 1 << 30;

/// Room for ten thousands of sessions.
const SESSIONS_BYTES: u64 = 32 << 20;

/// A client that subscribes to more than fits keeps its session at one front end.
const SESSION_BYTES: u64 = 128 << 10;

/// Servers before this one have faults in the storage of replicated streams.
const REPLICATION_SINCE: (u64, u64, u64) = (2, 10, 23);

/// Time for the answers that a process needs to start.
const CHECK_PATIENCE: Duration = Duration::from_secs(15);

/// Makes the streams of a pool, or brings their settings up to date.
pub async fn create(link: &Link, limits: PoolLimits) -> Result<(), LinkError> {
    if limits.keep < MIN_KEEP {
        return Err(LinkError::Refused {
            code: 0,
            text: "the log has to be kept for four hours at least".to_owned(),
        });
    }
    let version = link.server_version();
    if limits.replicas > 1 && parsed(&version).is_none_or(|version| version < REPLICATION_SINCE) {
        return Err(LinkError::Refused {
            code: 0,
            text: format!("nats-server {version} is too old for replicas: 2.10.23 or newer is needed"),
        });
    }
    for (name, config) in configs(link.pool(), limits) {
        let made: Result<Value, LinkError> = link.api(&format!("STREAM.CREATE.{name}"), &config).await;
        match made {
            Ok(_) => {}
            // It exists with other settings.
            Err(LinkError::Refused { code: 10_058, .. }) => {
                link.api::<Value>(&format!("STREAM.UPDATE.{name}"), &config)
                    .await?;
            }
            Err(error) => return Err(error),
        }
    }
    let jobs = link.pool().jobs_stream();
    let consumer = json!({
        "stream_name": jobs,
        "config": {
            "durable_name": QUEUE_CONSUMER,
            "ack_policy": "explicit",
            "deliver_policy": "all",
            "replay_policy": "instant",
            "ack_wait": nanos(ACK_WAIT),
            "max_deliver": -1,
            "max_ack_pending": 10_000,
            "max_waiting": 4_096,
        },
    });
    link.api::<Value>(
        &format!("CONSUMER.DURABLE.CREATE.{jobs}.{QUEUE_CONSUMER}"),
        &consumer,
    )
    .await?;
    Ok(())
}

/// One stream, as the server describes it.
#[derive(Debug, Clone, Deserialize)]
pub struct StreamState {
    #[serde(default)]
    pub messages: u64,
    #[serde(default)]
    pub bytes: u64,
    #[serde(default, rename = "last_seq")]
    pub last_sequence: u64,
    #[serde(default, rename = "consumer_count")]
    pub consumers: u64,
}

/// The streams of a pool.
#[derive(Debug, Clone)]
pub struct PoolState {
    pub operations: StreamState,
    pub jobs: StreamState,
    pub output: StreamState,
}

/// Sizes of the streams of a pool.
pub async fn state(link: &Link) -> Result<PoolState, LinkError> {
    let pool = link.pool();
    Ok(PoolState {
        operations: stream_state(link, &pool.operations_stream()).await?,
        jobs: stream_state(link, &pool.jobs_stream()).await?,
        output: stream_state(link, &pool.output_stream()).await?,
    })
}

/// Refuses a pool that `create` has not made, as far as a worker may look.
pub async fn check_log(link: &Link) -> Result<(), LinkError> {
    patiently_check(link, &link.pool().operations_stream()).await
}

/// The same for a front end.
pub async fn check(link: &Link) -> Result<(), LinkError> {
    check_log(link).await?;
    patiently_check(link, &link.pool().sessions_stream()).await
}

/// Servers that choose a leader do not answer for some seconds.
async fn patiently_check(link: &Link, stream: &str) -> Result<(), LinkError> {
    let deadline = Instant::now() + CHECK_PATIENCE;
    loop {
        match stream_state(link, stream).await {
            Err(LinkError::Unanswered) if Instant::now() < deadline => {}
            checked => return checked.map(drop),
        }
    }
}

pub(crate) async fn stream_state(link: &Link, stream: &str) -> Result<StreamState, LinkError> {
    Ok(stream_info(link, stream).await?.state)
}

/// The log of a pool, as stewards look at it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogState {
    /// It is over nine tenths of what it may take.
    pub(crate) is_nearly_full: bool,
    /// Age at which an event is dropped.
    pub(crate) age: Duration,
}

pub(crate) async fn log_state(link: &Link) -> Result<LogState, LinkError> {
    let info = stream_info(link, &link.pool().operations_stream()).await?;
    let limit = info.config.byte_limit().unwrap_or(u64::MAX);
    Ok(LogState {
        is_nearly_full: info.state.bytes > limit / 10 * 9,
        age: info.config.age(),
    })
}

/// Limits of the output of a pool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutputLimits {
    /// Of one principal's ended operations.
    pub(crate) bytes: u64,
    pub(crate) age: Duration,
}

/// A principal keeps a quarter of what the pool may: none fills it alone, and none has to be configured.
const SHARE_OF_PRINCIPAL: u64 = 4;

pub(crate) async fn output_limits(link: &Link) -> Result<OutputLimits, LinkError> {
    let config = stream_info(link, &link.pool().output_stream()).await?.config;
    Ok(OutputLimits {
        bytes: config
            .byte_limit()
            .map_or(u64::MAX, |bytes| bytes / SHARE_OF_PRINCIPAL),
        age: config.age(),
    })
}

/// Drops the output of all attempts of an operation.
pub(crate) async fn drop_output(link: &Link, owner: &str, operation: &str) -> Result<(), LinkError> {
    let stream = link.pool().output_stream();
    let asked = json!({ "filter": link.pool().outputs_subject(owner, operation) });
    link.api::<Value>(&format!("STREAM.PURGE.{stream}"), &asked)
        .await
        .map(drop)
}

#[derive(Deserialize)]
struct StreamInfo {
    config: StreamLimits,
    state: StreamState,
}

#[derive(Deserialize)]
struct StreamLimits {
    max_bytes: i64,
    #[serde(default)]
    max_age: u64,
}

impl StreamLimits {
    fn byte_limit(&self) -> Option<u64> {
        // Negative: no limit.
        u64::try_from(self.max_bytes).ok()
    }

    fn age(&self) -> Duration {
        match self.max_age {
            0 => Duration::MAX,
            nanos => Duration::from_nanos(nanos),
        }
    }
}

async fn stream_info(link: &Link, stream: &str) -> Result<StreamInfo, LinkError> {
    link.api(&format!("STREAM.INFO.{stream}"), &json!({})).await
}

pub(crate) fn configs(pool: &Pool, limits: PoolLimits) -> [(String, Value); 4] {
    let common = |name: String, subjects: String, special: Value| {
        let mut config = json!({
            "name": name,
            "subjects": [subjects],
            "storage": "file",
            "discard": "new",
            "num_replicas": limits.replicas,
            "retention": "limits",
            "max_consumers": -1,
            "max_msgs": -1,
            "max_bytes": -1,
        });
        if let (Value::Object(config), Value::Object(special)) = (&mut config, special) {
            config.extend(special);
        }
        (name, config)
    };
    [
        common(
            pool.operations_stream(),
            format!("ahma.op.{pool}.>"),
            json!({
                "max_age": nanos(limits.keep),
                // Refused events are few; the limit keeps a confused worker from filling the log.
                "max_msgs_per_subject": 64,
                "discard_new_per_subject": true,
                "max_bytes": LOG_BYTES,
                "max_msg_size": 512 << 10,
                // Reads have to come from the leader.
                "allow_direct": false,
                "duplicate_window": nanos(Duration::from_secs(120)),
            }),
        ),
        common(
            pool.jobs_stream(),
            format!("ahma.job.{pool}.>"),
            json!({
                "retention": "workqueue",
                "max_age": nanos(JOBS_AGE),
                "max_msgs": limits.queue,
                "max_msgs_per_subject": 1,
                "discard_new_per_subject": true,
            }),
        ),
        common(
            pool.output_stream(),
            format!("ahma.out.{pool}.>"),
            json!({
                "max_age": nanos(limits.keep),
                "max_bytes": limits.output_bytes,
                "allow_direct": true,
            }),
        ),
        common(
            pool.sessions_stream(),
            pool.session_subject("*"),
            json!({
                "max_age": nanos(limits.keep),
                "max_msgs_per_subject": 1,
                "max_bytes": SESSIONS_BYTES,
                "max_msg_size": SESSION_BYTES,
                "allow_direct": false,
            }),
        ),
    ]
}

pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn parsed(version: &str) -> Option<(u64, u64, u64)> {
    let mut parts = version.split(['.', '-']).map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??, parts.next()??))
}
