//! The connection to NATS, and the few requests of JetStream that this crate makes.
//!
//! A request that is not answered may have been carried out, and one that was given up is still sent after a reconnect. So
//! nothing here is repeated in silence: those who ask decide, knowing that a repetition must do no harm.

use std::{
    error::Error as _,
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use async_nats::{
    Client, ConnectError, ConnectErrorKind, ConnectOptions, Event as ConnectionEvent, HeaderMap, Message,
    Request, ServerError, Subscriber, client::RequestErrorKind, connection::State, rustls,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use tokio::sync::watch;

use crate::{
    event::Event,
    names::{Pool, inbox_of},
};

/// Long enough for a server that elects a new leader; a lost answer is asked for again.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// A dead peer is noticed after two or three of these.
const PING_INTERVAL: Duration = Duration::from_secs(2);

/// Messages that one subscription may hold. The server sends two megabytes of events before it waits for us, which are some
/// five thousand. Frames of output are larger, but those of one operation are no more than its output may be.
const SUBSCRIPTION_CAPACITY: usize = 16_384;

/// Address of NATS and the credentials for it.
#[derive(Debug, Clone)]
pub struct LinkSettings {
    /// Addresses as `nats://host:port` or `tls://host:port`, separated by commas.
    pub address: String,
    pub pool: Pool,
    /// Name of this connection, for those who look at the server.
    pub name: String,
    pub credentials: Credentials,
}

/// Proof of who we are.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    /// File with the seed of an nkey.
    pub key_file: Option<PathBuf>,
    /// File with the certificates of the authorities that the server's certificate may come from.
    pub authorities: Option<PathBuf>,
    /// Files of our certificate and its key.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

/// A connection, which reconnects by itself for as long as it takes. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Link {
    client: Client,
    pool: Pool,
    /// Number of times that a connection was made.
    connects: watch::Receiver<u64>,
    /// Latest complaint of the server; it names the subject that our credential may not use.
    complaint: watch::Receiver<String>,
}

/// Reason why a request had no success.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    #[error("cannot connect to NATS at {address}: {reason}")]
    NoConnection { address: String, reason: String },
    #[error("cannot use {file}: {reason}")]
    CredentialFile { file: String, reason: String },
    #[error("the certificate of NATS at {address} is not trusted: {reason}")]
    UntrustedServer { address: String, reason: String },
    #[error("NATS at {address} does not accept our certificate, or the lack of one: {reason}")]
    CertificateRefused { address: String, reason: String },
    #[error("NATS at {address} does not accept our key, or the lack of one")]
    KeyRefused { address: String },
    /// It may have been carried out nevertheless.
    #[error("NATS does not answer")]
    Unanswered,
    #[error("NATS does not let this process use {subject}")]
    Denied { subject: String },
    /// The subject has no listener: the stream does not exist, or JetStream is off.
    #[error("NATS has nothing at {subject}")]
    NothingThere { subject: String },
    #[error("NATS refuses: {text} ({code})")]
    Refused { code: u64, text: String },
    #[error("NATS answers what cannot be read: {0}")]
    Unreadable(String),
}

/// A message that a stream keeps.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) sequence: u64,
    pub(crate) time: OffsetDateTime,
    pub(crate) data: Bytes,
}

impl LinkError {
    fn from_connect(address: String, credentials: &Credentials, error: &ConnectError) -> Self {
        if let (ConnectErrorKind::Tls, Some((certificate, key))) = (error.kind(), &credentials.certificate) {
            return Self::CredentialFile {
                file: certificate.display().to_string(),
                reason: format!("{} is not the key of this certificate", key.display()),
            };
        }
        if let ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation = error.kind() {
            return Self::KeyRefused { address };
        }
        let cause = error
            .source()
            .and_then(|source| source.downcast_ref::<io::Error>());
        let cause = cause
            .and_then(io::Error::get_ref)
            .and_then(|cause| cause.downcast_ref());
        match cause {
            Some(rustls::Error::InvalidCertificate(reason)) => Self::UntrustedServer {
                address,
                reason: reason.to_string(),
            },
            Some(reason @ rustls::Error::AlertReceived(_)) => Self::CertificateRefused {
                address,
                reason: reason.to_string(),
            },
            Some(rustls::Error::InvalidMessage(_)) => Self::NoConnection {
                address,
                reason: "it does not speak TLS there".to_owned(),
            },
            _ => Self::NoConnection {
                address,
                reason: error.to_string(),
            },
        }
    }

    /// Another event came first, so what the sender knew is old.
    pub(crate) fn is_outrun(&self) -> bool {
        matches!(
            self,
            Self::Refused {
                code: 10_071 | 10_164,
                ..
            }
        )
    }

    /// The stream takes no more.
    pub(crate) fn is_full(&self) -> bool {
        matches!(self, Self::Refused { code: 10_077, text } if !text.contains("per subject"))
    }

    /// The subject has its one message already.
    pub(crate) fn is_there_already(&self) -> bool {
        matches!(self, Self::Refused { code: 10_077, text } if text.contains("per subject"))
    }
}

impl Credentials {
    /// Options of a connection that shows them. Files are read here once, so that a bad one is named.
    async fn shown_by(&self, mut options: ConnectOptions) -> Result<ConnectOptions, LinkError> {
        if let Some(file) = &self.key_file {
            let seed = read_credential(file).await?;
            options = options.nkey(seed.trim().to_owned());
            // Answers to others must not be readable, so every credential has its own inbox.
            options = options.custom_inbox_prefix(inbox_prefix(seed.trim()));
        }
        if let Some(file) = &self.authorities {
            expect_pem(file, "CERTIFICATE").await?;
            options = options.add_root_certificates(file.clone()).require_tls(true);
        }
        if let Some((certificate, key)) = &self.certificate {
            expect_pem(certificate, "CERTIFICATE").await?;
            expect_pem(key, "PRIVATE KEY").await?;
            options = options
                .add_client_certificate(certificate.clone(), key.clone())
                .require_tls(true);
        }
        Ok(options)
    }
}

impl Link {
    /// Connects. The first time there has to be a server: a wrong address or certificate would never show otherwise.
    pub async fn connect(settings: LinkSettings) -> Result<Self, LinkError> {
        let (connected, mut connects) = watch::channel(0_u64);
        let (complaining, complaint) = watch::channel(String::new());
        let options = ConnectOptions::new()
            .name(&settings.name)
            .ping_interval(PING_INTERVAL)
            .connection_timeout(ANSWER_TIMEOUT)
            .request_timeout(Some(ANSWER_TIMEOUT))
            .subscription_capacity(SUBSCRIPTION_CAPACITY)
            .reconnect_delay_callback(|attempts| {
                Duration::from_millis(
                    u64::try_from(attempts)
                        .unwrap_or(u64::MAX)
                        .saturating_mul(50)
                        .min(1_000),
                )
            })
            .event_callback(move |event| {
                match event {
                    ConnectionEvent::Connected => connected.send_modify(|connects| *connects += 1),
                    ConnectionEvent::ServerError(ServerError::Other(text)) => {
                        tracing::debug!(text, "NATS complains");
                        complaining.send_replace(text);
                    }
                    other => tracing::debug!(event = %other, "NATS"),
                }
                std::future::ready(())
            });
        let credentials = &settings.credentials;
        let options = credentials.shown_by(options).await?;
        let addresses: Vec<&str> = settings.address.split(',').map(str::trim).collect();
        let client = options
            .connect(addresses)
            .await
            .map_err(|error| LinkError::from_connect(settings.address.clone(), credentials, &error))?;
        // The event of this connection comes late. Taken for another connection, it would make a worker ask for its first job
        // again, while the answer to its first question is on its way.
        let _ = tokio::time::timeout(ANSWER_TIMEOUT, connects.wait_for(|count| *count > 0)).await;
        Ok(Self {
            client,
            pool: settings.pool,
            connects,
            complaint,
        })
    }

    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    pub fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// Version of the server.
    pub fn server_version(&self) -> String {
        self.client.server_info().version
    }

    /// Counts connections: a new number means that messages may have been missed.
    pub(crate) fn connects(&self) -> watch::Receiver<u64> {
        let mut connects = self.connects.clone();
        connects.mark_unchanged();
        connects
    }

    /// True if the last complaint of the server was about this subject. It says so some time after it was used.
    pub(crate) fn is_denied(&self, subject: &str) -> bool {
        is_about(&self.complaint.borrow(), subject)
    }

    /// Waits until the server complains about this subject from now on.
    async fn denied(&self, subject: &str) {
        let mut complaint = self.complaint.clone();
        complaint.mark_unchanged();
        while complaint.changed().await.is_ok() {
            if is_about(&complaint.borrow_and_update(), subject) {
                return;
            }
        }
        std::future::pending().await
    }

    /// Sends what is still on its way.
    pub async fn flush(&self) {
        let _ = tokio::time::timeout(ANSWER_TIMEOUT, self.client.flush()).await;
    }

    pub(crate) async fn subscribe(&self, subject: String) -> Result<Subscriber, LinkError> {
        let subscribed = self.client.subscribe(subject).await;
        subscribed.map_err(|error| LinkError::Unreadable(error.to_string()))
    }

    pub(crate) fn new_inbox(&self) -> String {
        self.client.new_inbox()
    }

    /// Sends without an answer; lost if there is no connection.
    pub(crate) async fn publish(&self, subject: String, data: Bytes) {
        if let Err(error) = self.client.publish(subject, data).await {
            tracing::debug!(%error, "a message could not be sent");
        }
    }

    pub(crate) async fn request(
        &self,
        subject: String,
        data: Bytes,
        headers: Option<HeaderMap>,
        timeout: Duration,
    ) -> Result<Message, LinkError> {
        let mut request = Request::new().payload(data).timeout(Some(timeout));
        if let Some(headers) = headers {
            request = request.headers(headers);
        }
        self.send(subject, request).await
    }

    /// Asks for a message of a stream. It comes under its own subject, so it needs an inbox of its own.
    pub(crate) async fn pull(
        &self,
        subject: String,
        data: Bytes,
        timeout: Duration,
    ) -> Result<Message, LinkError> {
        let request = Request::new().payload(data).timeout(Some(timeout));
        self.send(subject, request.inbox(self.new_inbox())).await
    }

    async fn send(&self, subject: String, request: Request) -> Result<Message, LinkError> {
        // The server does not answer what it denies, and other complaints may follow.
        let answered = tokio::select! {
            biased;
            answered = self.client.send_request(subject.clone(), request) => answered,
            () = self.denied(&subject) => return Err(LinkError::Denied { subject }),
        };
        answered.map_err(|error| match error.kind() {
            RequestErrorKind::NoResponders => LinkError::NothingThere { subject },
            RequestErrorKind::TimedOut => LinkError::Unanswered,
            RequestErrorKind::InvalidSubject | RequestErrorKind::MaxPayloadExceeded => LinkError::Refused {
                code: 0,
                text: error.to_string(),
            },
            RequestErrorKind::Other => LinkError::Unanswered,
        })
    }

    /// A request to the API of JetStream.
    pub(crate) async fn api<T: DeserializeOwned>(
        &self,
        method: &str,
        request: &Value,
    ) -> Result<T, LinkError> {
        let subject = format!("$JS.API.{method}");
        let data = Bytes::from(request.to_string());
        let answer = self.request(subject, data, None, ANSWER_TIMEOUT).await?;
        read_answer(&answer.payload)
    }

    /// Publishes into a stream. Gives the sequence of the message.
    pub(crate) async fn store(
        &self,
        subject: String,
        data: Bytes,
        headers: Option<HeaderMap>,
    ) -> Result<u64, LinkError> {
        #[derive(Deserialize)]
        struct Kept {
            seq: u64,
        }
        let answer = self.request(subject, data, headers, ANSWER_TIMEOUT).await?;
        let kept: Kept = read_answer(&answer.payload)?;
        Ok(kept.seq)
    }

    /// Publishes into a stream, at a certain place of the subject.
    pub(crate) async fn store_at(
        &self,
        subject: String,
        data: Bytes,
        place: Append<'_>,
    ) -> Result<u64, LinkError> {
        let mut headers = HeaderMap::new();
        match place {
            Append::First { name } => headers.insert("Nats-Msg-Id", name),
            Append::After(sequence) => {
                headers.insert(
                    "Nats-Expected-Last-Subject-Sequence",
                    sequence.to_string().as_str(),
                );
            }
            Append::Anytime => {}
        }
        self.store(subject, data, Some(headers)).await
    }

    /// Appends an event after the one with sequence `after`; refused if there is a newer one.
    pub(crate) async fn append(
        &self,
        (owner, operation): (&str, &str),
        event: &Event,
        after: Append<'_>,
    ) -> Result<u64, LinkError> {
        let data = serde_json::to_vec(event).map_err(|error| LinkError::Unreadable(error.to_string()))?;
        let subject = self.pool.operation_subject(owner, operation);
        self.store_at(subject, data.into(), after).await
    }

    /// The first event of an operation at or after a sequence, as the leader has it.
    pub(crate) async fn next_event(
        &self,
        (owner, operation): (&str, &str),
        from: u64,
    ) -> Result<Option<(Stored, Option<Event>)>, LinkError> {
        let subject = self.pool.operation_subject(owner, operation);
        let asked = json!({ "seq": from, "next_by_subj": subject });
        let stored = self.message(&self.pool.operations_stream(), &asked).await?;
        Ok(stored.map(|stored| {
            let event = serde_json::from_slice(&stored.data).ok();
            (stored, event)
        }))
    }

    /// The newest message of a subject, as the leader has it.
    pub(crate) async fn last_message(
        &self,
        stream: &str,
        subject: &str,
    ) -> Result<Option<Stored>, LinkError> {
        self.message(stream, &json!({ "last_by_subj": subject })).await
    }

    /// One message of a stream, as the leader has it.
    async fn message(&self, stream: &str, asked: &Value) -> Result<Option<Stored>, LinkError> {
        #[derive(Deserialize)]
        struct Answer {
            message: Kept,
        }
        #[derive(Deserialize)]
        struct Kept {
            seq: u64,
            data: Option<String>,
            time: String,
        }
        let answer: Answer = match self.api(&format!("STREAM.MSG.GET.{stream}"), asked).await {
            Ok(answer) => answer,
            // No such message.
            Err(LinkError::Refused { code: 10_037, .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let data = STANDARD
            .decode(answer.message.data.unwrap_or_default())
            .map_err(|error| LinkError::Unreadable(error.to_string()))?;
        Ok(Some(Stored {
            sequence: answer.message.seq,
            time: read_time(&answer.message.time),
            data: data.into(),
        }))
    }

    /// The first frame of an attempt at or after a sequence, from whichever server is near.
    pub(crate) async fn next_frame(&self, subject: &str, from: u64) -> Result<Option<Stored>, LinkError> {
        let method = format!("$JS.API.DIRECT.GET.{}", self.pool.output_stream());
        let asked = json!({ "seq": from, "next_by_subj": subject });
        let data = Bytes::from(asked.to_string());
        let answer = self.request(method, data, None, ANSWER_TIMEOUT).await?;
        if answer.status.is_some_and(|status| status.as_u16() == 404) {
            return Ok(None);
        }
        let header = |name: &str| {
            let headers = answer.headers.as_ref()?;
            Some(headers.get(name)?.as_str())
        };
        let sequence = header("Nats-Sequence").and_then(|text| text.parse().ok());
        let sequence =
            sequence.ok_or_else(|| LinkError::Unreadable("a frame without a number".to_owned()))?;
        Ok(Some(Stored {
            sequence,
            time: read_time(header("Nats-Time-Stamp").unwrap_or_default()),
            data: answer.payload,
        }))
    }
}

/// Place of an event in the log of its operation.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Append<'a> {
    /// The first; a repetition under the same name is the same event.
    First {
        name: &'a str,
    },
    /// Only if no other came after this sequence.
    After(u64),
    Anytime,
}

fn is_about(complaint: &str, subject: &str) -> bool {
    complaint.starts_with("Permissions Violation") && complaint.contains(&format!("\"{subject}\""))
}

/// Reads a file here, so that one that cannot be read is named.
async fn read_credential(file: &Path) -> Result<String, LinkError> {
    let read = tokio::fs::read_to_string(file).await;
    read.map_err(|error| LinkError::CredentialFile {
        file: file.display().to_string(),
        reason: error.to_string(),
    })
}

/// The client does not say which file has nothing in it.
async fn expect_pem(file: &Path, what: &str) -> Result<(), LinkError> {
    if read_credential(file).await?.contains(&format!("{what}-----")) {
        return Ok(());
    }
    Err(LinkError::CredentialFile {
        file: file.display().to_string(),
        reason: format!("it has no {} in PEM form", what.to_ascii_lowercase()),
    })
}

/// The inbox of a credential: its public key tells it from others.
fn inbox_prefix(seed: &str) -> String {
    match nkeys::KeyPair::from_seed(seed) {
        Ok(key) => inbox_of(&key.public_key()),
        Err(_) => "_INBOX".to_owned(),
    }
}

fn read_answer<T: DeserializeOwned>(answer: &[u8]) -> Result<T, LinkError> {
    #[derive(Deserialize)]
    struct Refusal {
        error: RefusalReason,
    }
    #[derive(Deserialize)]
    struct RefusalReason {
        err_code: Option<u64>,
        description: Option<String>,
        code: u64,
    }
    if let Ok(Refusal { error }) = serde_json::from_slice(answer) {
        return Err(LinkError::Refused {
            code: error.err_code.unwrap_or(error.code),
            text: error.description.unwrap_or_default(),
        });
    }
    serde_json::from_slice(answer).map_err(|error| LinkError::Unreadable(error.to_string()))
}

fn read_time(text: &str) -> OffsetDateTime {
    OffsetDateTime::parse(text, &Rfc3339).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}
