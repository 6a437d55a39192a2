//! Scanners of hosts and web sites.

use serde_json::json;
use test_support::needs;

use super::{Project, target::Target};

const WORDS: &str = "basket\nadmin\nhelp\nlogin\nterms\n";

#[test]
fn gobuster_names_hidden_paths() {
    if !needs("gobuster", &["version"], "apt install gobuster") {
        return;
    }
    let Some(target) = Target::start() else { return };
    let mut project = Project::new(
        &["gobuster.json"],
        &[("words.txt", WORDS), ("other.txt", "nothing\n")],
    );
    let url = target.url();
    let answer = project.finds(
        "gobuster_dir",
        json!({"url": url, "wordlist": "words.txt", "threads": 1}),
    );
    insta::assert_snapshot!(answer, @r"
    findings: 2 low
    - low /admin: answers 200 (/admin)
    - low /login: answers 200 (/login)
    ");
    let answer = project.succeeds("gobuster_dir", json!({"url": url, "wordlist": "other.txt"}));
    insta::assert_snapshot!(answer, @"completed after [time] · [id]");
    let answer = project.finds(
        "gobuster_dir",
        json!({"url": "http://127.0.0.1:1", "wordlist": "words.txt"}),
    );
    insta::assert_snapshot!(answer, @r#"
    exit 1 after [time] · [id]
    findings: 1 high
    - high error on running gobuster: unable to connect to http://127.0.0.1:[port]/: Get "http://127.0.0.1:[port]/": dial tcp 127.0.0.1:[port]: connect: connection refused
    [[number] lines in all: output {"operation_id": "[id]"}]
    "#);
}

#[test]
fn ffuf_names_hidden_paths() {
    if !needs("ffuf", &["-V"], "apt install ffuf") {
        return;
    }
    let Some(target) = Target::start() else { return };
    let mut project = Project::new(
        &["ffuf.json"],
        &[("words.txt", WORDS), ("other.txt", "nothing\n")],
    );
    let url = format!("{}/FUZZ", target.url());
    let answer = project.finds("ffuf", json!({"url": url, "wordlist": "words.txt", "threads": 1}));
    insta::assert_snapshot!(answer, @r"
    findings: 2 low
    - low admin answers 200, 14 bytes (admin)
    - low login answers 200, 14 bytes (login)
    ");
    let answer = project.succeeds("ffuf", json!({"url": url, "wordlist": "other.txt"}));
    insta::assert_snapshot!(answer, @"completed after [time] · [id]");
}

#[test]
fn nikto_names_what_it_finds() {
    if !needs(
        "nikto",
        &["-Version"],
        "apt install nikto, of Debian's section non-free",
    ) {
        return;
    }
    let Some(target) = Target::start() else { return };
    let mut project = Project::new(&["nikto.json"], &[]);
    let answer = project.finds("nikto", json!({"host": target.url(), "tuning": "3"}));
    insta::assert_snapshot!(answer, @r"
    findings: 1 low, 1 info
    - low nikto: The anti-clickjacking X-Frame-Options header is not present.
    - info server: nginx/1.14.0
    + 845 items checked: 0 error(s) and 1 item(s) reported on remote host
    ");
}

#[test]
fn whatweb_names_the_software_of_a_site() {
    if !needs("whatweb", &["--version"], "apt install whatweb") {
        return;
    }
    let Some(target) = Target::start() else { return };
    let mut project = Project::new(&["whatweb.json"], &[]);
    let answer = project.succeeds("whatweb", json!({"targets": [target.url()]}));
    insta::assert_snapshot!(answer, @r"
    findings: 1 info
    - info whatweb: Country[RESERVED][ZZ], HTTPServer[nginx/1.14.0], IP[127.0.0.1], Title[Shop], nginx[1.14.0] (http://127.0.0.1:[port])
    ");
    let answer = project.finds("whatweb", json!({"targets": ["http://127.0.0.1:1"]}));
    insta::assert_snapshot!(answer, @r#"
    findings: 1 high
    - high unreachable: Connection refused - connect(2) for "127.0.0.1" port 1 (http://127.0.0.1:[port])
    "#);
}

#[test]
fn sqlmap_finds_an_injection() {
    if !needs("sqlmap", &["--version"], "apt install sqlmap") {
        return;
    }
    let Some(target) = Target::start() else { return };
    let mut project = Project::new(&["sqlmap.json"], &[]);
    let url = format!("{}/item?id=1", target.url());
    let answer = project.finds("sqlmap", json!({"url": url, "technique": "B", "dbms": "sqlite"}));
    let finding = &answer.data["findings"][0];
    assert_eq!(
        (&finding["severity"], &finding["cwe"]),
        (&json!("critical"), &json!("CWE-89"))
    );
    insta::assert_snapshot!(answer, @r"
    findings: 1 critical
    - critical sql-injection: SQL injection in id (GET): boolean-based blind id=1 AND [number]=[number] (http://127.0.0.1:[port]/item?id=1)
    back-end DBMS: SQLite
    ");
    let url = format!("{}/login?id=1", target.url());
    let answer = project.succeeds("sqlmap", json!({"url": url, "technique": "B", "dbms": "sqlite"}));
    insta::assert_snapshot!(answer, @"all tested parameters do not appear to be injectable");
}

#[test]
fn testssl_rates_a_certificate() {
    if !needs("testssl", &["--version"], "apt install testssl.sh") {
        return;
    }
    let Some(target) = Target::start() else { return };
    let mut project = Project::new(&["testssl.json"], &[]);
    let host = format!("127.0.0.1:{}", target.https_port);
    let answer = project.finds(
        "testssl",
        json!({"target": host, "server-defaults": true, "fast": true}),
    );
    insta::assert_snapshot!(answer, @r"
    findings: 1 critical, 4 high, 1 low
    - critical cert_chain_of_trust: failed (self signed). (127.0.0.1:[port])
    - high cert_subjectAltName: No SAN, browsers are complaining (127.0.0.1:[port])
    - high cert_trust: certificate does not match supplied URI (127.0.0.1:[port])
    - high cert_expirationStatus: expires < 30 days (1) (127.0.0.1:[port])
    - high cert_revocation: Neither CRL nor OCSP URI provided (127.0.0.1:[port])
    - low DNS_CAArecord: not offered (127.0.0.1:[port])
    ");
}

#[test]
fn nmap_names_the_service_behind_a_port() {
    if !needs("nmap", &["--version"], "apt install nmap") {
        return;
    }
    let Some(target) = Target::start() else { return };
    let mut project = Project::new(&["nmap.json"], &[]);
    let answer = project.finds(
        "nmap",
        json!({"targets": ["127.0.0.1"], "ports": target.http_port.to_string(), "no-ping": true,
               "service-version": true, "version-intensity": 2}),
    );
    let findings = &answer.data["findings"];
    assert_eq!(
        findings[0]["id"],
        format!("tcp/{}", target.http_port),
        "{}",
        answer.text
    );
    let version = findings[1]["description"].as_str().unwrap_or_default();
    assert!(version.starts_with("nginx 1.14.0"), "{version}");
    insta::assert_snapshot!(answer, @r#"
    Nmap scan report for localhost (127.0.0.1)

    PORT      STATE SERVICE VERSION
    tcp [port] open  http    nginx 1.14.0

    Nmap done: 1 IP address (1 host up) scanned in [time]

    findings: 2 info
    2 more: output {"operation_id": "[id]", "what": "findings"}
    "#);
}
