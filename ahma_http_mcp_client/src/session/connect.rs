//! Finds the transport and the era a server speaks: modern → Streamable HTTP → HTTP+SSE → the program.
//!
//! Every step is recorded with its outcome, so that a failure says what was tried. A step is given up for the next
//! only when the next can help: a login request or a dead host ends the HTTP steps.

use std::{fmt, time::Duration};

use rmcp::{
    RoleClient,
    model::ProtocolVersion,
    service::{
        ClientCacheConfig, ClientInitializeError, ClientLifecycleMode, Peer, RunningService,
        RunningServiceCancellationToken, Service, serve_client_with_lifecycle,
    },
    transport::Transport,
};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::{
    failure::{CREDENTIALS_REFUSED, Failure},
    progress::ProgressRoutes,
    tap::Tapped,
};
use crate::{
    config::{HttpEndpoint, ServerConfig, StdioCommand, TransportChoice},
    oauth::manager_for,
    settings::ClientSettings,
    transport::{
        HttpMcpError, HttpMcpTransport,
        link::{Link, LinkEvent},
        stdio::{LastOutput, StdioTransport},
    },
};

/// One way to reach a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Both eras: `server/discover` first, `initialize` if the server does not know it.
    StreamableHttp,
    LegacySse,
    Stdio,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StreamableHttp => "Streamable HTTP",
            Self::LegacySse => "HTTP+SSE",
            Self::Stdio => "stdio",
        })
    }
}

/// A step that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub step: Step,
    /// The protocol revision that was agreed on, or the reason of the failure.
    pub outcome: Result<String, String>,
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.outcome {
            Ok(revision) => write!(f, "{}: speaks {revision}", self.step),
            Err(reason) => write!(f, "{}: {reason}", self.step),
        }
    }
}

/// The attempts that led to a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectReport {
    pub step: Step,
    pub protocol: String,
    pub attempts: Vec<Attempt>,
}

/// The failure of all attempts to connect.
#[derive(Debug)]
pub(crate) enum ConnectFailure {
    LoginRequired {
        challenge: String,
    },
    /// No server was contacted.
    TokenFile(String),
    Exhausted(Vec<Attempt>),
}

pub(crate) struct Connection {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) running: Running,
    pub(crate) routes: ProgressRoutes,
    pub(crate) events: mpsc::Receiver<LinkEvent>,
    pub(crate) report: ConnectReport,
    /// Keeps `events` open for transports that have none.
    _link: std::sync::Arc<Link>,
}

/// The life of a connection; it ends with the value.
pub(crate) struct Running {
    stop: RunningServiceCancellationToken,
    ended: AbortOnDropHandle<()>,
}

impl Running {
    fn new<H: Service<RoleClient>>(service: RunningService<RoleClient, H>) -> Self {
        Self {
            stop: service.cancellation_token(),
            ended: AbortOnDropHandle::new(tokio::spawn(async move {
                let _ = service.waiting().await;
            })),
        }
    }

    /// Resolves when the connection is closed, by either side.
    pub(crate) async fn closed(&mut self) {
        if !self.ended.is_finished() {
            let _ = (&mut self.ended).await;
        }
    }

    /// Deletes the session or stops the program, unless the server hangs.
    pub(crate) async fn close(self, timeout: Duration) {
        let Self { stop, ended } = self;
        stop.cancel();
        if !ended.is_finished() {
            let _ = tokio::time::timeout(timeout, ended).await;
        }
    }
}

/// Connects once; the caller retries.
pub(crate) async fn connect<H: Service<RoleClient> + Clone>(
    config: &ServerConfig,
    settings: &ClientSettings,
    handler: &H,
) -> Result<Connection, ConnectFailure> {
    let mut attempts = Vec::new();
    let mut host_is_dead = false;
    for step in steps(config) {
        if host_is_dead && step != Step::Stdio {
            continue;
        }
        let (link, events) = Link::new(settings.retry);
        let routes = ProgressRoutes::default();
        let start = Start {
            config,
            settings,
            handler,
            link: &link,
            routes: &routes,
        };
        let taken = tokio::time::timeout(settings.connect_timeout, start.take(step));
        let mut failure = match taken.await.unwrap_or_else(|_| {
            let seconds = settings.connect_timeout.as_secs();
            Err(Failure::Lost(format!("no answer within {seconds} s")))
        }) {
            Ok(service) => {
                link.establish();
                // rmcp would otherwise answer from its cache when the server is gone.
                service
                    .peer()
                    .set_response_cache_config(ClientCacheConfig::disabled())
                    .await;
                let protocol = service
                    .peer()
                    .peer_info()
                    .map(|info| info.protocol_version.to_string());
                let protocol = protocol.unwrap_or_default();
                attempts.push(Attempt {
                    step,
                    outcome: Ok(protocol.clone()),
                });
                tracing::info!(server = config.name, %step, protocol, "connected");
                let report = ConnectReport {
                    step,
                    protocol,
                    attempts,
                };
                return Ok(Connection {
                    peer: service.peer().clone(),
                    running: Running::new(service),
                    routes,
                    events,
                    report,
                    _link: link,
                });
            }
            Err(failure) => failure,
        };
        tracing::info!(server = config.name, %step, reason = failure.reason(), "did not connect");
        let has_own_credentials = config
            .http
            .as_ref()
            .is_some_and(HttpEndpoint::has_own_credentials);
        match failure {
            // No other HTTP transport will do better.
            Failure::LoginRequired(_) if has_own_credentials => {
                host_is_dead = true;
                failure = Failure::Refused(CREDENTIALS_REFUSED.to_owned());
            }
            Failure::LoginRequired(challenge) => {
                return Err(ConnectFailure::LoginRequired { challenge });
            }
            Failure::TokenFile(reason) => {
                return Err(ConnectFailure::TokenFile(reason));
            }
            Failure::Unreachable(_) => host_is_dead = true,
            Failure::NoToken(_) | Failure::Refused(_) | Failure::Broken(_) | Failure::Lost(_) => {}
        }
        attempts.push(Attempt {
            step,
            outcome: Err(failure.reason().to_owned()),
        });
    }
    Err(ConnectFailure::Exhausted(attempts))
}

/// The steps a configuration allows, in order.
fn steps(config: &ServerConfig) -> Vec<Step> {
    let (http, program) = (config.http.is_some(), config.stdio.is_some());
    let all = [
        (Step::StreamableHttp, TransportChoice::Http, http),
        (Step::LegacySse, TransportChoice::Sse, http),
        (Step::Stdio, TransportChoice::Stdio, program),
    ];
    let is_chosen = |choice| [TransportChoice::Auto, choice].contains(&config.transport);
    all.into_iter()
        .filter_map(|(step, choice, is_configured)| (is_configured && is_chosen(choice)).then_some(step))
        .collect()
}

struct Start<'a, H> {
    config: &'a ServerConfig,
    settings: &'a ClientSettings,
    handler: &'a H,
    link: &'a std::sync::Arc<Link>,
    routes: &'a ProgressRoutes,
}

impl<H: Service<RoleClient> + Clone> Start<'_, H> {
    async fn take(&self, step: Step) -> Result<RunningService<RoleClient, H>, Failure> {
        match (step, &self.config.http, &self.config.stdio) {
            (Step::StreamableHttp, Some(endpoint), _) => self.streamable(endpoint).await,
            (Step::LegacySse, Some(endpoint), _) => self.legacy_sse(endpoint).await,
            (Step::Stdio, _, Some(command)) => self.program(command).await,
            _ => Err(Failure::Refused("is not configured".to_owned())),
        }
    }

    async fn streamable(&self, endpoint: &HttpEndpoint) -> Result<RunningService<RoleClient, H>, Failure> {
        let open = async || {
            let manager = self.manager(endpoint).await?;
            HttpMcpTransport::streamable_on(endpoint, manager, self.link.clone())
                .map_err(|error| Failure::of_http(&error))
        };
        let started = match self.handshake(open().await?, either_era()).await {
            Err(error) if only_speaks_legacy(&error) => {
                self.handshake(open().await?, ClientLifecycleMode::Initialize)
                    .await
            }
            started => started,
        };
        started.map_err(|error| Failure::of_start(&error))
    }

    async fn legacy_sse(&self, endpoint: &HttpEndpoint) -> Result<RunningService<RoleClient, H>, Failure> {
        let manager = self.manager(endpoint).await?;
        let transport = HttpMcpTransport::legacy_sse_on(endpoint, manager, self.link.clone())
            .await
            .map_err(|error| Failure::of_http(&error))?;
        let started = self.handshake(transport, ClientLifecycleMode::Initialize).await;
        started.map_err(|error| Failure::of_start(&error))
    }

    async fn program(&self, command: &StdioCommand) -> Result<RunningService<RoleClient, H>, Failure> {
        let last_output = LastOutput::default();
        let open = || {
            StdioTransport::spawn(&self.config.name, command, last_output.clone())
                .map_err(|error| Failure::Refused(format!("cannot start `{}`: {error}", command.program)))
        };
        let started = match self.handshake(open()?, either_era()).await {
            Err(error) if only_speaks_legacy(&error) => {
                self.handshake(open()?, ClientLifecycleMode::Initialize).await
            }
            started => started,
        };
        let error = match started {
            Ok(service) => return Ok(service),
            Err(error) => error,
        };
        let failure = Failure::of_start(&error);
        Err(match last_output.get().await {
            Some(line) => Failure::Lost(format!("{}; its last output: {line}", failure.reason())),
            None => failure,
        })
    }

    async fn manager(
        &self,
        endpoint: &HttpEndpoint,
    ) -> Result<rmcp::transport::AuthorizationManager, Failure> {
        manager_for(endpoint, &self.settings.tokens)
            .await
            .map_err(|error| Failure::of_http(&HttpMcpError::Auth(error)))
    }

    async fn handshake<T>(
        &self,
        transport: T,
        lifecycle: ClientLifecycleMode,
    ) -> Result<RunningService<RoleClient, H>, ClientInitializeError>
    where
        T: Transport<RoleClient> + 'static,
    {
        let transport = Tapped::new(transport, self.routes.clone());
        serve_client_with_lifecycle(self.handler.clone(), transport, lifecycle).await
    }
}

fn either_era() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::LATEST],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    }
}

/// Cases in which rmcp does not fall back to `initialize`, and should: a server that knows `server/discover` and
/// offers legacy revisions only, and one that answers every unknown method with an empty result.
fn only_speaks_legacy(error: &ClientInitializeError) -> bool {
    match error {
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => server_supported
            .iter()
            .any(|version| *version < ProtocolVersion::NO_INITIALIZE),
        ClientInitializeError::ExpectedInitResult(Some(_)) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_decides_the_steps() {
        use Step::{LegacySse, Stdio, StreamableHttp};
        let http = HttpEndpoint::new("https://x.example/mcp".parse().unwrap());
        let program = StdioCommand {
            program: "p".to_owned(),
            args: vec![],
            env: Default::default(),
            working_directory: None,
        };
        let cases: [(TransportChoice, bool, bool, &[Step]); 6] = [
            (
                TransportChoice::Auto,
                true,
                true,
                &[StreamableHttp, LegacySse, Stdio],
            ),
            (TransportChoice::Auto, true, false, &[StreamableHttp, LegacySse]),
            (TransportChoice::Auto, false, true, &[Stdio]),
            (TransportChoice::Http, true, true, &[StreamableHttp]),
            (TransportChoice::Sse, true, true, &[LegacySse]),
            (TransportChoice::Stdio, true, true, &[Stdio]),
        ];
        for (transport, has_http, has_program, expected) in cases {
            let config = ServerConfig {
                name: "s".to_owned(),
                transport,
                http: has_http.then(|| http.clone()),
                stdio: has_program.then(|| program.clone()),
            };
            assert_eq!(steps(&config), expected, "{transport:?}");
        }
    }
}
