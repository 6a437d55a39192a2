//! TLS for the listener, with certificates that are read again when their files change.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::file_stamp::FileStamp;

/// The files of a certificate chain and its key, in PEM.
#[derive(Debug, Clone)]
pub struct TlsSettings {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("{flag} {path}: {reason}")]
    File {
        flag: &'static str,
        path: PathBuf,
        reason: String,
    },
    #[error("the certificate and its key cannot be used: {0}")]
    Pair(String),
}

/// The certificate in use. Connections that are open keep the one they began with.
#[derive(Debug)]
pub(crate) struct Certificate {
    settings: TlsSettings,
    provider: Arc<CryptoProvider>,
    current: RwLock<Arc<CertifiedKey>>,
    seen: Mutex<Stamps>,
}

type Stamps = [Option<FileStamp>; 2];

impl Certificate {
    pub(crate) fn load(settings: TlsSettings) -> Result<Arc<Self>, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let current = RwLock::new(Arc::new(read(&settings, &provider)?));
        let seen = Mutex::new(stamps(&settings));
        Ok(Arc::new(Self {
            settings,
            provider,
            current,
            seen,
        }))
    }

    pub(crate) fn acceptor(self: &Arc<Self>) -> Result<TlsAcceptor, TlsError> {
        let mut config = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::Pair(error.to_string()))?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(self) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// Reads the files again if they changed. Files that became unusable, or fit only half, change nothing.
    pub(crate) fn refresh(&self) {
        let now = stamps(&self.settings);
        let mut seen = self.seen.lock();
        if *seen == now {
            return;
        }
        *seen = now;
        match read(&self.settings, &self.provider) {
            Ok(key) => {
                *self.current.write() = Arc::new(key);
                tracing::info!(path = %self.settings.certificate.display(), "certificate read again");
            }
            Err(error) => tracing::error!(%error, "the certificate read before stays in use"),
        }
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.read()))
    }
}

fn stamps(settings: &TlsSettings) -> Stamps {
    [&settings.certificate, &settings.key].map(|path| FileStamp::of(path))
}

fn read(settings: &TlsSettings, provider: &CryptoProvider) -> Result<CertifiedKey, TlsError> {
    let in_file = |flag: &'static str, path: &Path, error: pem::Error| TlsError::File {
        flag,
        path: path.to_owned(),
        reason: match error {
            pem::Error::Io(error) => error.to_string(),
            pem::Error::NoItemsFound => {
                "there is nothing of the kind in this file; it must be PEM".to_owned()
            }
            error => error.to_string(),
        },
    };
    let (certificate, key) = (&settings.certificate, &settings.key);
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(|certificates| certificates.collect::<Result<Vec<_>, _>>())
        .and_then(|chain| {
            (!chain.is_empty())
                .then_some(chain)
                .ok_or(pem::Error::NoItemsFound)
        })
        .map_err(|error| in_file("--tls-cert", certificate, error))?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(|error| in_file("--tls-key", key, error))?;
    CertifiedKey::from_der(chain, key, provider).map_err(|error| TlsError::Pair(error.to_string()))
}
