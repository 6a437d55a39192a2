//! A NATS server that speaks TLS and asks for certificates.

use std::{fs, path::PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::json;
use tempfile::TempDir;
use test_support::{Era, HttpServer, Nats, Roots, ServerOptions, Workspace, wait_for};

use crate::session::options;

/// An authority, with certificates of its own making in a directory.
struct Authority {
    directory: TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let directory = TempDir::new().unwrap();
        fs::write(directory.path().join("ca.pem"), issuer.pem()).unwrap();
        Self { directory, issuer }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Certificate and key for a host or a client.
    fn certify(&self, name: &str) -> (PathBuf, PathBuf) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new([name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let files = (
            self.file(&format!("{name}.pem")),
            self.file(&format!("{name}.key")),
        );
        fs::write(&files.0, certificate.pem()).unwrap();
        fs::write(&files.1, key.serialize_pem()).unwrap();
        files
    }
}

/// A server that demands certificates of an authority, and shows one for a host.
fn demanding(authority: &Authority, host: &str) -> Option<Nats> {
    let (certificate, key) = authority.certify(host);
    let path = |path: &PathBuf| path.to_str().unwrap().to_owned();
    let (certificate, key, ca) = (path(&certificate), path(&key), path(&authority.file("ca.pem")));
    Nats::start_with(&[
        "--tls",
        "--tlscert",
        &certificate,
        "--tlskey",
        &key,
        "--tlsverify",
        "--tlscacert",
        &ca,
    ])
}

fn address(nats: &Nats) -> String {
    nats.address().replace("nats://", "tls://")
}

/// A process of the cluster that trusts one authority and shows a certificate of another.
fn member(workspace: &Workspace, nats: &Nats, trusted: &Authority, own: Option<&Authority>) -> ServerOptions {
    let options = options(workspace)
        .env("AHMA_CLUSTER", address(nats))
        .env("AHMA_CLUSTER_CA", trusted.file("ca.pem").to_str().unwrap());
    let Some(own) = own else { return options };
    let (certificate, key) = own.certify("member");
    options
        .env("AHMA_CLUSTER_CERT", certificate.to_str().unwrap())
        .env("AHMA_CLUSTER_CERT_KEY", key.to_str().unwrap())
}

#[test]
fn front_end_and_worker_meet_at_a_server_that_asks_for_certificates() {
    let authority = Authority::new();
    let Some(nats) = demanding(&authority, "127.0.0.1") else {
        return;
    };
    let workspace = Workspace::new();
    let member = || member(&workspace, &nats, &authority, Some(&authority));
    let init = member().args(["cluster", "init", "--max-output", "64M"]);
    let init = init.command().output().unwrap();
    assert!(init.status.success(), "{}", String::from_utf8_lossy(&init.stderr));
    let worker = member().args(["worker"]).start();
    wait_for("the worker", || {
        worker.complaints().contains("serves pool").then_some(())
    });
    let mut stdio = member().open(Era::Legacy);
    let http = HttpServer::start(&member().args(["--mode", "http", "--http-port", "0"]));
    let mut over_http = http.session(Roots::None);
    let synchronous = |command: &str| json!({"command": command, "execution_mode": "synchronous"});
    for client in [&mut *stdio, &mut over_http] {
        let said = client.tool("sandboxed_shell", synchronous("echo hello"));
        assert_eq!(said["structuredContent"]["output"], "hello\n", "{said}");
    }
    // The key of the certificate is kept from commands as other keys are.
    let key = authority.file("member.key");
    let read = stdio.tool("sandboxed_shell", synchronous(&format!("cat {}", key.display())));
    assert_eq!(read["structuredContent"]["status"], "failed", "{read}");
    assert!(!read.to_string().contains("PRIVATE KEY"), "{read}");
}

#[test]
fn a_certificate_that_does_not_fit_is_told_with_the_flag_and_the_file() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let Some(nats) = demanding(&authority, "127.0.0.1") else {
        return;
    };
    let workspace = Workspace::new();
    let failed = |options: &ServerOptions, words: &[&str]| {
        let ended = options.clone().args(words).command().output().unwrap();
        assert_eq!(ended.status.code(), Some(1));
        String::from_utf8_lossy(&ended.stderr).into_owned()
    };
    let untrusted = member(&workspace, &nats, &stranger, Some(&authority));
    let foreign = member(&workspace, &nats, &authority, Some(&stranger));
    let bare = member(&workspace, &nats, &authority, None);
    let missing = untrusted.clone().env("AHMA_CLUSTER_CERT", "/missing/cert.pem");
    let stranger_key = stranger.certify("member").1;
    let mismatched =
        member(&workspace, &nats, &authority, Some(&authority)).env("AHMA_CLUSTER_CERT_KEY", &stranger_key);
    let empty = untrusted.clone().env("AHMA_CLUSTER_CA", &stranger_key);
    let Some(misnamed) = demanding(&authority, "nats.example.com") else {
        return;
    };
    let misnamed = member(&workspace, &misnamed, &authority, Some(&authority));
    let system = options(&workspace).env("AHMA_CLUSTER", address(&nats));
    let ca = format!("--cluster-ca {}", stranger.file("ca.pem").display());
    let certificate = format!("--cluster-cert {}", stranger.file("member.pem").display());
    let cases = [
        (&untrusted, ["is not trusted", &ca]),
        (&foreign, ["does not accept our certificate", &certificate]),
        (&misnamed, ["not valid for name", "--cluster-ca"]),
        (&bare, ["or the lack of one", "--cluster-cert FILE"]),
        (&missing, ["cannot use /missing/cert.pem", "--cluster-cert"]),
        (
            &mismatched,
            ["is not the key of this certificate", "--cluster-cert-key"],
        ),
        (&empty, ["it has no certificate in PEM form", "--cluster-ca"]),
        (&system, ["is not trusted", "--cluster-ca FILE"]),
    ];
    for (options, expected) in cases {
        for words in [&[][..], &["worker"], &["cluster", "status"]] {
            let said = failed(options, words);
            for text in expected {
                assert!(said.contains(text) && said.contains("hint:"), "{text}: {said}");
            }
        }
    }
}
