//! Target of the scanners: a web server of our own, on loopback.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;
use test_support::needs;

pub(super) struct Target {
    process: Child,
    pub(super) http_port: u16,
    pub(super) https_port: u16,
    _certificate: TempDir,
}

impl Target {
    /// None, with a notice, where something it needs is missing.
    pub(super) fn start() -> Option<Self> {
        if !needs("python3", &["--version"], "apt install python3")
            || !needs("openssl", &["version"], "apt install openssl")
        {
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let (certificate, key) = (
            directory.path().join("cert.pem"),
            directory.path().join("key.pem"),
        );
        let made = Command::new("openssl")
            .args([
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-days",
                "2",
                "-subj",
                "/CN=localhost",
            ])
            .arg("-out")
            .arg(&certificate)
            .arg("-keyout")
            .arg(&key)
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert!(made.success());
        let mut process = Command::new("python3")
            .args(["-c", include_str!("target.py")])
            .args([&certificate, &key])
            .stdout(Stdio::piped())
            // Scanners break connections off, which it would complain of.
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let ports: Vec<u16> = line
            .split_whitespace()
            .map(|port| port.parse().unwrap())
            .collect();
        Some(Self {
            process,
            http_port: ports[0],
            https_port: ports[1],
            _certificate: directory,
        })
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.http_port)
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
