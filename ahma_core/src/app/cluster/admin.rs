//! `ahma_mcp cluster init` and `ahma_mcp cluster status`.

use std::{fmt::Write as _, time::Duration};

use ahma_cluster::{Heard, Link, PoolLimits, Stage, Tail, create, roll_call, state};
use tokio_util::sync::CancellationToken;

use super::{
    args::{ClusterArgs, ClusterCommand, InitPoolArgs},
    choice::ClusterChoice,
    keys,
};
use crate::app::{
    exit::{Failure, print},
    run::runtime,
    settings::Environment,
};

/// Time in which living workers answer a roll call.
pub(in crate::app) const ROLL_CALL: Duration = Duration::from_millis(500);

pub(in crate::app) fn administer(command: &ClusterCommand, args: &ClusterArgs) -> Result<(), Failure> {
    if let ClusterCommand::Keys(own) = command {
        return print(keys::make(&args.pool, &own.directory)?);
    }
    let choice = ClusterChoice::required(args, &Environment::read()?.working_directory)?;
    let text = runtime()?.block_on(async {
        let link = choice.connect("operator").await?;
        match command {
            ClusterCommand::Init(limits) => init(&choice, &link, limits).await,
            ClusterCommand::Status | ClusterCommand::Keys(_) => status(&choice, &link).await,
        }
    })?;
    print(text)
}

async fn init(choice: &ClusterChoice, link: &Link, args: &InitPoolArgs) -> Result<String, Failure> {
    let limits = PoolLimits {
        replicas: args.replicas,
        queue: args.max_queue,
        output_bytes: args.max_output as u64,
        keep: args.max_age,
    };
    create(link, limits)
        .await
        .map_err(|error| choice.unusable(&error))?;
    Ok(format!(
        "pool {} is ready\nhint: ahma_mcp worker --cluster {} --pool {} starts a worker\n",
        choice.pool, choice.address, choice.pool
    ))
}

async fn status(choice: &ClusterChoice, link: &Link) -> Result<String, Failure> {
    let unusable = |error| choice.unusable(&error);
    let streams = state(link).await.map_err(unusable)?;
    let shutdown = CancellationToken::new();
    let _end = shutdown.clone().drop_guard();
    let tail = Tail::start(link.clone(), shutdown);
    tail.synced().await.map_err(unusable)?;
    let workers = roll_call(link, ROLL_CALL).await.map_err(unusable)?;
    let open = tail.open_entries();
    let is_running = |stage: &Stage| matches!(stage, Stage::Running { .. });
    let running = open
        .iter()
        .filter(|entry| is_running(&entry.folded.stage))
        .count();
    let queued = open.len() - running;
    let mut text = format!("pool {} on nats-server {}\n", choice.pool, link.server_version());
    let _ = writeln!(text, "operations: {running} running, {queued} queued");
    let _ = writeln!(
        text,
        "streams: log {} events, {} bytes; queue {} jobs; output {} frames, {} bytes",
        streams.operations.messages,
        streams.operations.bytes,
        streams.jobs.messages,
        streams.output.messages,
        streams.output.bytes
    );
    if workers.is_empty() {
        text.push_str("no worker is alive\n");
    }
    for Heard { beat, .. } in workers {
        let draining = if beat.draining { ", draining" } else { "" };
        let labels = match beat.labels.is_empty() {
            true => String::new(),
            false => format!(", {}", beat.labels.join(" ")),
        };
        let _ = writeln!(
            text,
            "worker {}: {} of {} running, version {}{labels}{draining}",
            beat.worker, beat.running, beat.slots, beat.version
        );
    }
    Ok(text)
}
