//! The flags about a cluster.

use std::{path::PathBuf, time::Duration};

use ahma_cluster::Pool;
use ahma_common::value;
use clap::{Args, Parser, Subcommand, ValueEnum};

const CLUSTER: &str = "Cluster";

pub(crate) const WORKER_EXAMPLES: &str = "\
Examples:
  ahma_mcp worker --cluster nats://127.0.0.1:4222
  ahma_mcp worker --cluster tls://nats.example.com --pool gpu --cluster-key worker.nk

Its tools, its sandbox and its scope are those of a server with the same flags, which
ahma_mcp --help explains; --max-operations is the number of operations it runs at once.
TERM lets running operations end, for --drain-time at most.";

pub(crate) const CLUSTER_EXAMPLES: &str = "\
Examples:
  ahma_mcp cluster init --cluster nats://127.0.0.1        make the streams of the pool `default`
  ahma_mcp cluster status --cluster nats://127.0.0.1      workers, queue and sizes
  ahma_mcp cluster keys --pool gpu --directory /etc/ahma  keys, and an account for nats.conf";

#[derive(Debug, Clone, Args)]
pub(crate) struct ClusterArgs {
    /// Let the workers of a cluster run all calls: addresses of its NATS servers, separated by commas.
    #[arg(long, env = "AHMA_CLUSTER", value_name = "URL", help_heading = CLUSTER)]
    pub(crate) cluster: Option<String>,

    /// The group of workers that runs the calls.
    #[arg(long, env = "AHMA_POOL", value_name = "NAME", default_value = "default", help_heading = CLUSTER)]
    pub(crate) pool: Pool,

    /// File with the nkey seed that NATS knows this process by.
    #[arg(long, env = "AHMA_CLUSTER_KEY", value_name = "FILE", help_heading = CLUSTER)]
    pub(crate) cluster_key: Option<PathBuf>,

    /// File with the certificates that the NATS server's own may come from; requires TLS.
    #[arg(long, env = "AHMA_CLUSTER_CA", value_name = "FILE", help_heading = CLUSTER)]
    pub(crate) cluster_ca: Option<PathBuf>,

    /// File with the certificate that this process shows to the NATS server; requires TLS.
    #[arg(long, env = "AHMA_CLUSTER_CERT", value_name = "FILE", requires = "cluster_cert_key", help_heading = CLUSTER)]
    pub(crate) cluster_cert: Option<PathBuf>,

    /// File with the key of that certificate.
    #[arg(long, env = "AHMA_CLUSTER_CERT_KEY", value_name = "FILE", requires = "cluster_cert", help_heading = CLUSTER)]
    pub(crate) cluster_cert_key: Option<PathBuf>,

    /// File with the nkey seed that signs requests to workers.
    #[arg(long, env = "AHMA_SIGNING_KEY", value_name = "FILE", help_heading = CLUSTER)]
    pub(crate) signing_key: Option<PathBuf>,

    /// Silence after which a worker counts as gone; the same for all front ends and workers.
    #[arg(long, env = "AHMA_CLUSTER_LEASE", value_name = "TIME", default_value = "15s", value_parser = value::positive_duration, help_heading = CLUSTER)]
    pub(crate) cluster_lease: Duration,

    /// What follows when a worker is gone: its operations are interrupted, or those of read-only and idempotent tools run
    /// again on another.
    #[arg(long, env = "AHMA_ON_WORKER_LOSS", value_enum, value_name = "WHAT", default_value = "interrupt", help_heading = CLUSTER)]
    pub(crate) on_worker_loss: OnWorkerLoss,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnWorkerLoss {
    Interrupt,
    Rerun,
}

#[derive(Debug, Parser)]
pub(crate) struct WorkerArgs {
    /// A word about this worker for those who look at the cluster; may be repeated. It chooses nothing.
    #[arg(long = "label", value_name = "WORD")]
    pub(crate) labels: Vec<String>,

    /// Time for running operations when the worker is asked to end.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = value::duration)]
    pub(crate) drain_time: Duration,

    /// File with the public keys of front ends, one on each line; requests that none of them signed are refused.
    #[arg(long, value_name = "FILE")]
    pub(crate) request_keys: Option<PathBuf>,

    /// The path under which front ends know the files of this worker's scope, if it is another one; may be repeated.
    #[arg(long, value_name = "DIR")]
    pub(crate) mapped_from: Vec<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Make the streams of a pool, or change their limits
    Init(InitPoolArgs),
    /// Show the workers, the queue and the sizes of the streams
    Status,
    /// Make keys for front ends, workers and operators of a pool, and the NATS account with their permissions
    Keys(KeysArgs),
}

#[derive(Debug, Parser)]
pub(crate) struct KeysArgs {
    /// Directory for the files; no existing file is changed.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) directory: PathBuf,
}

#[derive(Debug, Parser)]
pub(crate) struct InitPoolArgs {
    /// Copies of each stream on servers of a NATS cluster.
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=5))]
    pub(crate) replicas: u8,

    /// Operations that may wait; a call beyond that is refused.
    #[arg(long, value_name = "COUNT", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_queue: u64,

    /// Bytes of output that are kept of all operations together.
    #[arg(long, value_name = "BYTES", default_value = "8G", value_parser = value::positive_byte_count)]
    pub(crate) max_output: usize,

    /// Time for which operations and their output are kept; 4h at least.
    #[arg(long, value_name = "TIME", default_value = "2d", value_parser = value::positive_duration)]
    pub(crate) max_age: Duration,
}
