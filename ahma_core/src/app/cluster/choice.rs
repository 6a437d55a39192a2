//! The cluster that the flags name.

use std::path::{Path, PathBuf};

use ahma_cluster::{Credentials, Link, LinkError, LinkSettings, Pool, Signer};
use tokio_util::sync::CancellationToken;

use super::args::{ClusterArgs, OnWorkerLoss};
use crate::cluster::PoolSessions;
use crate::{
    app::{
        exit::{Failure, chain},
        settings::Settings,
    },
    cluster::{ClusterFront, ClusterSettings},
};

/// A cluster, and how to reach it.
#[derive(Debug, Clone)]
pub(crate) struct ClusterChoice {
    pub(crate) address: String,
    pub(crate) pool: Pool,
    pub(crate) credentials: Credentials,
    pub(crate) signing_key: Option<PathBuf>,
    pub(crate) lease: std::time::Duration,
    pub(crate) rerun: bool,
}

impl ClusterChoice {
    /// None without `--cluster`.
    pub(crate) fn resolve(args: &ClusterArgs, directory: &Path) -> Result<Option<Self>, Failure> {
        let Some(address) = args.cluster.clone().filter(|address| !address.is_empty()) else {
            return Ok(None);
        };
        if address.contains('@') {
            return Err(
                Failure::user("--cluster may not contain a user or a password: messages show it")
                    .with_hint("use a key, with --cluster-key FILE"),
            );
        }
        let absolute = |path: &Option<PathBuf>| path.as_ref().map(|path| directory.join(path));
        Ok(Some(Self {
            address,
            pool: args.pool.clone(),
            credentials: Credentials {
                key_file: absolute(&args.cluster_key),
                authorities: absolute(&args.cluster_ca),
                certificate: absolute(&args.cluster_cert).zip(absolute(&args.cluster_cert_key)),
            },
            signing_key: absolute(&args.signing_key),
            lease: args.cluster_lease,
            rerun: args.on_worker_loss == OnWorkerLoss::Rerun,
        }))
    }

    /// Fails without `--cluster`.
    pub(crate) fn required(args: &ClusterArgs, directory: &Path) -> Result<Self, Failure> {
        Self::resolve(args, directory)?.ok_or_else(no_cluster)
    }

    /// Files that commands must not reach.
    pub(crate) fn private_files(&self) -> impl Iterator<Item = PathBuf> + use<> {
        let certificate_key = self.credentials.certificate.as_ref().map(|(_, key)| key.clone());
        let files = [
            self.credentials.key_file.clone(),
            certificate_key,
            self.signing_key.clone(),
        ];
        files.into_iter().flatten()
    }

    pub(super) fn link_settings(&self, role: &str) -> LinkSettings {
        LinkSettings {
            address: self.address.clone(),
            pool: self.pool.clone(),
            name: format!("ahma_mcp {role}"),
            credentials: self.credentials.clone(),
        }
    }

    pub(in crate::app) async fn connect(&self, role: &str) -> Result<Link, Failure> {
        let link = Link::connect(self.link_settings(role)).await;
        link.map_err(|error| self.unusable(&error))
    }

    pub(in crate::app) fn unusable(&self, error: &LinkError) -> Failure {
        let hint = match error {
            LinkError::NoConnection { .. } => {
                "check --cluster, --cluster-key and --cluster-ca; is nats-server running?".to_owned()
            }
            LinkError::CredentialFile { .. } => {
                "check the files of --cluster-key, --cluster-ca, --cluster-cert and --cluster-cert-key"
                    .to_owned()
            }
            LinkError::UntrustedServer { .. } => match &self.credentials.authorities {
                Some(file) => format!(
                    "--cluster-ca {} has to hold the certificate of the authority that signed the server's, for the host in --cluster",
                    file.display()
                ),
                None => "name the authority that signed the server's certificate with --cluster-ca FILE".to_owned(),
            },
            LinkError::CertificateRefused { .. } => match &self.credentials.certificate {
                Some((certificate, _)) => format!(
                    "--cluster-cert {} has to be signed by an authority in `ca_file` of nats.conf",
                    certificate.display()
                ),
                None => "give the certificate that the server asks for with --cluster-cert FILE and --cluster-cert-key FILE".to_owned(),
            },
            LinkError::NothingThere { .. } => "this nats-server has no JetStream: start it with -js, or with a block `jetstream` in its configuration"
                    .to_owned(),
            LinkError::KeyRefused { .. } => match &self.credentials.key_file {
                Some(file) => format!(
                    "the account of --cluster-key {} has to be in nats.conf; nats-server --signal reload reads it again",
                    file.display()
                ),
                None => "name the key of this role with --cluster-key FILE".to_owned(),
            },
            LinkError::Denied { .. } => match &self.credentials.key_file {
                Some(file) => format!(
                    "--cluster-key {} is of another role or another pool; ahma_mcp cluster keys makes one for each role",
                    file.display()
                ),
                None => "name the key of this role with --cluster-key FILE".to_owned(),
            },
            // Stream not found.
            LinkError::Refused { code: 10_059, .. } => format!(
                "ahma_mcp cluster init --cluster {} --pool {} makes the streams of the pool",
                self.address, self.pool
            ),
            LinkError::Refused { .. } | LinkError::Unanswered | LinkError::Unreadable(_) => {
                "ahma_mcp doctor --cluster says more".to_owned()
            }
        };
        Failure::user(format!("--cluster cannot be used: {}", chain(error))).with_hint(hint)
    }
}

pub(super) fn no_cluster() -> Failure {
    Failure::user("no cluster is named").with_hint("add --cluster nats://HOST:4222")
}

/// Connects a front end, if the settings name a cluster.
pub(in crate::app) async fn open(
    settings: &Settings,
    shutdown: &CancellationToken,
) -> Result<Option<ClusterFront>, Failure> {
    let Some(choice) = &settings.cluster else {
        return Ok(None);
    };
    let signer = choice.signing_key.as_deref().map(read_signer).transpose()?;
    let cluster = ClusterSettings {
        link: choice.link_settings("front end"),
        lease: choice.lease,
        signer,
        rerun: choice.rerun,
        scope: settings.sandbox.scope.clone(),
        expose: settings.execution.expose,
    };
    let opened = ClusterFront::open(cluster, shutdown.clone()).await;
    opened.map(Some).map_err(|error| choice.unusable(&error))
}

/// The sessions of the pool, if the settings name a cluster.
pub(in crate::app) async fn open_sessions(settings: &Settings) -> Result<Option<PoolSessions>, Failure> {
    let Some(choice) = &settings.cluster else {
        return Ok(None);
    };
    let opened = PoolSessions::open(choice.link_settings("sessions")).await;
    opened.map(Some).map_err(|error| choice.unusable(&error))
}

pub(in crate::app) fn read_signer(file: &Path) -> Result<Signer, Failure> {
    let unusable = |reason: String| {
        Failure::user(format!(
            "--signing-key {} cannot be used: {reason}",
            file.display()
        ))
        .with_hint("give a file with the seed of an nkey, which begins with S")
    };
    let seed = std::fs::read_to_string(file).map_err(|error| unusable(error.to_string()))?;
    Signer::from_seed(&seed).map_err(|error| unusable(error.to_string()))
}
