//! The one crypto provider of the process.
//!
//! reqwest is built without one, so this must run before the first client is built.

/// Installs ring, unless the program has already chosen a provider.
pub(crate) fn install() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Losing the race to another thread means that a provider is there, which is all that is asked.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}
