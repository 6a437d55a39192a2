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
    let mut project = Project::new(&["gobuster.json"], &[("words.txt", WORDS)]);
    let arguments = json!({"url": target.url(), "wordlist": "words.txt", "threads": 1});
    let answer = project.finds("gobuster_dir", arguments);
    assert_eq!(answer.ids(), ["/admin", "/login"], "{}", answer.text);
}

#[test]
fn ffuf_names_hidden_paths() {
    if !needs("ffuf", &["-V"], "apt install ffuf") {
        return;
    }
    let Some(target) = Target::start() else { return };
    let mut project = Project::new(&["ffuf.json"], &[("words.txt", WORDS)]);
    let url = format!("{}/FUZZ", target.url());
    let answer = project.finds("ffuf", json!({"url": url, "wordlist": "words.txt", "threads": 1}));
    assert_eq!(answer.ids(), ["admin", "login"], "{}", answer.text);
}

#[test]
fn whatweb_names_the_software_of_a_site() {
    if !needs("whatweb", &["--version"], "apt install whatweb") {
        return;
    }
    let Some(target) = Target::start() else { return };
    let mut project = Project::new(&["whatweb.json"], &[]);
    let answer = project.finds("whatweb", json!({"targets": [target.url()]}));
    let title = answer.data["findings"][0]["title"].as_str().unwrap_or_default();
    assert!(
        title.contains("nginx[1.14.0]") && title.contains("Title[Shop]"),
        "{}",
        answer.text
    );
}

#[test]
fn sqlmap_finds_an_injection() {
    if !needs("sqlmap", &["--version"], "apt install sqlmap") {
        return;
    }
    let Some(target) = Target::start() else { return };
    let mut project = Project::new(&["sqlmap.json"], &[]);
    let url = format!("{}/item?id=1", target.url());
    let answer = project.call("sqlmap", json!({"url": url, "technique": "B", "dbms": "sqlite"}));
    let finding = &answer.data["findings"][0];
    assert_eq!(finding["severity"], "critical", "{}", answer.text);
    assert_eq!(finding["title"], "SQL injection in id (GET): boolean-based blind");
    assert_eq!(finding["cwe"], "CWE-89");
}

#[test]
fn testssl_rates_a_certificate() {
    if !needs("testssl", &["--version"], "apt install testssl.sh") {
        return;
    }
    let Some(target) = Target::start() else { return };
    let mut project = Project::new(&["testssl.json"], &[]);
    let host = format!("127.0.0.1:{}", target.https_port);
    let answer = project.call(
        "testssl",
        json!({"target": host, "server-defaults": true, "fast": true}),
    );
    assert!(
        answer.ids().contains(&"cert_chain_of_trust".to_owned()),
        "{}",
        answer.text
    );
    let worst = &answer.data["findings"][0];
    assert_eq!(worst["severity"], "critical", "{}", answer.text);
    assert_eq!(worst["location"], host);
}

#[test]
fn nmap_names_the_service_behind_a_port() {
    if !needs("nmap", &["--version"], "apt install nmap") {
        return;
    }
    let Some(target) = Target::start() else { return };
    let mut project = Project::new(&["nmap.json"], &[]);
    let answer = project.call(
        "nmap",
        json!({"targets": ["127.0.0.1"], "ports": target.http_port.to_string(), "no-ping": true,
               "service-version": true, "version-intensity": 2}),
    );
    assert_eq!(
        answer.ids(),
        [format!("tcp/{}", target.http_port)],
        "{}",
        answer.text
    );
    let finding = &answer.data["findings"][0];
    assert!(
        finding["description"]
            .as_str()
            .unwrap_or_default()
            .starts_with("nginx 1.14.0"),
        "{}",
        answer.text
    );
}
