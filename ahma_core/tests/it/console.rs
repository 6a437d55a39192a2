//! The console: who gets in, who does not, and that nothing a command prints acts in its pages.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    time::Instant,
};

use serde_json::{Value, json};
use test_support::{Client, Era, HttpServer, Server, TEST_TIMEOUT, Workspace, wait_for};

use crate::{admin::Served, live::scanner, session::options};

/// `ahma_mcp console` of a workspace's user.
pub(crate) struct Console {
    _process: Server,
    pub(crate) address: String,
    /// Path of the link that lets one browser in.
    pub(crate) link: String,
}

impl Console {
    pub(crate) fn open(workspace: &Workspace) -> Self {
        let process = options(workspace)
            .args(["console", "--no-open"])
            .env("USER", "tester")
            .start();
        let (address, link) = wait_for("the link", || {
            let said = process.complaints();
            let (_, rest) = said.split_once("http://")?;
            let (address, rest) = rest.split_once('/')?;
            let (link, _) = rest.split_once('\n')?;
            Some((address.to_owned(), format!("/{link}")))
        });
        Self {
            _process: process,
            address,
            link,
        }
    }

    fn browser(&self) -> Browser {
        let mut browser = Browser::new(&self.address);
        let answer = browser.get(&self.link);
        browser.take_cookie(&answer);
        browser
    }
}

/// One who sends what a browser would send.
#[derive(Clone)]
pub(crate) struct Browser {
    address: String,
    cookie: String,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Browser {
    pub(crate) fn new(address: &str) -> Self {
        Self {
            address: address.to_owned(),
            cookie: String::new(),
        }
    }

    pub(crate) fn take_cookie(&mut self, answer: &Answer) {
        let set = answer
            .head
            .lines()
            .find_map(|line| line.strip_prefix("set-cookie: "));
        let set = set.unwrap_or_else(|| panic!("{} {}", answer.status, answer.body));
        for attribute in ["HttpOnly", "SameSite=Strict", "Path=/"] {
            assert!(set.contains(attribute), "{set}");
        }
        self.cookie = format!("cookie: {}\r\n", set.split(';').next().unwrap());
    }

    fn send(&self, method: &str, path: &str, headers: &str, form: &str) -> Answer {
        let mut connection = self.ask(method, path, headers, form);
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        Answer {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    /// Sends a request, and leaves its answer to be read.
    fn ask(&self, method: &str, path: &str, headers: &str, form: &str) -> TcpStream {
        let (address, cookie) = (&self.address, &self.cookie);
        let host = if headers.contains("host:") {
            String::new()
        } else {
            format!("host: {address}\r\n")
        };
        let mut connection = TcpStream::connect(address).unwrap();
        connection.set_read_timeout(Some(2 * TEST_TIMEOUT)).unwrap();
        write!(
            connection,
            "{method} {path} HTTP/1.1\r\n{host}{cookie}{headers}connection: close\r\n\
             content-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n{form}",
            form.len()
        )
        .unwrap();
        connection
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "", "")
    }

    pub(crate) fn post(&self, path: &str, form: &str) -> Answer {
        let origin = format!(
            "origin: http://{}\r\nsec-fetch-site: same-origin\r\n",
            self.address
        );
        self.send("POST", path, &origin, form)
    }

    /// The token that forms of the console carry.
    pub(crate) fn form_token(&self) -> String {
        let page = self.get("/console/audit").body;
        let (_, rest) = page
            .split_once("name=\"form_token\" value=\"")
            .unwrap_or_else(|| panic!("{page}"));
        rest.split_once('"').unwrap().0.to_owned()
    }
}

fn start(client: &mut Client, command: &str) -> String {
    let arguments = json!({"command": command, "execution_mode": "asynchronous"});
    let started = client.tool("sandboxed_shell", arguments);
    let id = started["structuredContent"]["operation_id"].as_str();
    id.unwrap_or_else(|| panic!("{started}")).to_owned()
}

#[test]
fn a_link_lets_one_browser_in_and_all_others_see_a_page_that_says_how() {
    let workspace = Workspace::new();
    let console = Console::open(&workspace);
    let stranger = Browser::new(&console.address);
    let welcome = stranger.get("/");
    assert_eq!(welcome.status, 200);
    assert!(welcome.body.contains("ahma_mcp console"), "{}", welcome.body);
    for path in [
        "/console/history",
        "/console/operations/op_1",
        "/console/now/events",
        "/console/audit",
    ] {
        let answer = stranger.get(path);
        assert_eq!(answer.status, 303, "{path}: {}", answer.body);
    }
    assert_eq!(stranger.send("HEAD", &console.link, "", "").status, 303);
    let browser = console.browser();
    // It is in already.
    assert_eq!(browser.get(&console.link).status, 303);
    for path in [
        "/",
        "/console/history",
        "/console/tools",
        "/console/sandbox",
        "/console/audit",
    ] {
        let answer = browser.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        let policy = "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'";
        assert!(answer.head.contains(policy), "{}", answer.head);
        for inline in [
            "style=",
            "<style",
            " onclick",
            "javascript:",
            "http://",
            "https://",
        ] {
            assert!(
                !answer.body.contains(inline),
                "{path} has {inline}: {}",
                answer.body
            );
        }
    }
    let again = stranger.get(&console.link);
    assert_eq!(again.status, 403);
    assert!(again.body.contains("was used already"), "{}", again.body);
    assert_eq!(stranger.get("/console/login?code=").status, 403);

    let token = browser.form_token();
    let mut open_page = BufReader::new(browser.ask("GET", "/console/now/events", "", ""));
    let mut status = String::new();
    open_page.read_line(&mut status).unwrap();
    assert!(status.contains(" 200 "), "{status}");
    assert_eq!(
        browser
            .post("/console/logout", &format!("form_token={token}"))
            .status,
        303
    );
    assert_eq!(browser.get("/console/history").status, 303);
    // It ends with the login.
    let deadline = Instant::now() + TEST_TIMEOUT;
    while open_page.read_line(&mut String::new()).unwrap() > 0 {
        assert!(Instant::now() < deadline, "it goes on");
    }
}

#[test]
fn only_a_form_of_the_console_changes_anything_and_the_agent_reads_who_did() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Legacy);
    let id = start(&mut server, "echo here; sleep 1000");
    let console = Console::open(&workspace);
    let browser = console.browser();
    let path = format!("/console/operations/{id}");
    wait_for("the page of the operation", || {
        browser.get(&path).body.contains(">here<").then_some(())
    });
    let token = browser.form_token();
    let own = format!("origin: http://{}\r\n", console.address);
    let form = format!("form_token={token}&reason=enough");
    let cancel = format!("{path}/cancel");
    let port: u16 = console.address.rsplit(':').next().unwrap().parse().unwrap();
    for (what, headers, form) in [
        ("a forged form", own.clone(), "reason=enough"),
        (
            "the token of another login",
            own.clone(),
            "form_token=0123456789abcdef&reason=x",
        ),
        (
            "a foreign origin",
            "origin: http://evil.example\r\n".to_owned(),
            form.as_str(),
        ),
        (
            "another port",
            format!("origin: http://127.0.0.1:{}\r\n", port ^ 1),
            &form,
        ),
        ("a page without an origin", "origin: null\r\n".to_owned(), &form),
        (
            "what the browser says",
            format!("{own}sec-fetch-site: same-site\r\n"),
            &form,
        ),
        ("a foreign host", "host: evil.example\r\n".to_owned(), &form),
        (
            "a token where none is known",
            format!("{own}authorization: Bearer x\r\n"),
            &form,
        ),
    ] {
        let answer = browser.send("POST", &cancel, &headers, form);
        assert_eq!(answer.status, 403, "{what}: {}", answer.body);
    }
    // Another page of this machine must not read it either.
    let read = browser.send(
        "GET",
        "/",
        "sec-fetch-site: same-site\r\nsec-fetch-mode: cors\r\n",
        "",
    );
    assert_eq!(read.status, 403);
    assert!(
        !read.head.contains("access-control-allow-origin"),
        "{}",
        read.head
    );
    let nobody = Browser::new(&console.address);
    assert_eq!(nobody.post(&cancel, &form).status, 401);

    let cancelled = browser.post(&cancel, &form);
    assert_eq!(cancelled.status, 303, "{}", cancelled.body);
    let told = server.tool("await", json!({"operation_ids": [id], "timeout_seconds": 30}));
    assert!(
        told.to_string()
            .contains("the operator tester cancelled it: enough"),
        "{told}"
    );
    wait_for("the end in the page", || {
        browser.get(&path).body.contains("state cancelled").then_some(())
    });
}

#[test]
fn a_server_shows_its_console_to_operators_alone() {
    let mut served = Served::new(&[]);
    let address = served.server.address().to_owned();
    // The start says where it is, and what the flags led to.
    let said = wait_for("the summary", || {
        let said = served.server.process().complaints();
        said.contains("  console").then_some(said)
    });
    for expected in [
        "  auth      tokens of ",
        "  isolation one server process for all clients\n",
        "  sandbox   ",
        "  limits    50 sessions, ",
        "audit.jsonl\n",
        &format!("  metrics   http://{address}/metrics\n"),
        &format!("  console   http://{address}/\n"),
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let mut browser = Browser::new(&address);
    let welcome = browser.get("/");
    for expected in [
        "Token of an operator",
        &format!("&quot;url&quot;: &quot;http://{address}/mcp&quot;"),
        "Bearer TOKEN",
    ] {
        assert!(welcome.body.contains(expected), "{expected}: {}", welcome.body);
    }
    for role in ["agent", "metrics"] {
        let token = served.token(role);
        let refused = browser.post("/console/login", &format!("token={token}"));
        assert_eq!(refused.status, 403, "{role}");
        assert!(!refused.head.contains("set-cookie"), "{}", refused.head);
        let bearer = format!("authorization: Bearer {token}\r\n");
        for path in ["/", "/console/history"] {
            assert_eq!(
                browser.send("GET", path, &bearer, "").status,
                403,
                "{role} {path}"
            );
        }
    }
    assert_eq!(browser.post("/console/login", "token=ahma_wrong").status, 403);

    // What the local user runs is none of an operator's business.
    let mut own = options(&served.workspace).open(Era::Legacy);
    let private = start(&mut own, "echo private");
    own.tool(
        "await",
        json!({"operation_ids": [private], "timeout_seconds": 30}),
    );
    let session = served.session();
    let id = served.start(&session, "echo shared; sleep 1000");

    let login = browser.post("/console/login", &format!("token={}", served.token("operator")));
    assert_eq!(login.status, 303, "{}", login.body);
    browser.take_cookie(&login);
    let now = wait_for("the operation", || {
        Some(browser.get("/").body).filter(|page| page.contains("echo shared"))
    });
    let scope = served.workspace.scope().display().to_string();
    for expected in [
        "the-agent · editor<",
        "editor 7",
        "127.0.0.1",
        &format!("<td>{scope}</td>"),
        "End session",
    ] {
        assert!(now.contains(expected), "{expected}: {now}");
    }
    assert!(!browser.get("/console/history").body.contains("echo private"));
    assert_eq!(browser.get(&format!("/console/operations/{private}")).status, 404);

    let form = format!("form_token={}&reason=too+loud", browser.form_token());
    let cancelled = browser.post(&format!("/console/operations/{id}/cancel"), &form);
    assert_eq!(cancelled.status, 303, "{}", cancelled.body);
    let told = served
        .call(&session, "await", json!({"operation_ids": [id]}))
        .to_string();
    assert!(
        told.contains("the operator the-operator cancelled it: too loud"),
        "{told}"
    );
    let ended = browser.post(&format!("/console/sessions/{session}/end"), &form);
    assert_eq!(ended.status, 303, "{}", ended.body);
    wait_for("the audit trail", || {
        let audit = browser.get("/console/audit").body;
        let all = [
            "intact",
            "action</span> log_in",
            "path</span> /console/login",
            "action</span> cancel",
            "action</span> end_session",
            "only the token of an operator",
        ];
        all.iter().all(|expected| audit.contains(expected)).then_some(())
    });

    // A login is worth as much as its token.
    let tokens = served.workspace.home().join("tokens.json");
    let mut file: Value = serde_json::from_str(&fs::read_to_string(&tokens).unwrap()).unwrap();
    file["tokens"]
        .as_array_mut()
        .unwrap()
        .retain(|token| token["name"] != "the-operator");
    fs::write(&tokens, file.to_string()).unwrap();
    assert_eq!(browser.get("/console/history").status, 303);
}

#[test]
fn under_tls_a_browser_sends_the_login_over_tls_alone() {
    let workspace = Workspace::new();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = workspace.home().join("cert.pem");
    let key = workspace.home().join("key.pem");
    fs::write(&certificate, made.cert.pem()).unwrap();
    fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let process = options(&workspace)
        .args(["--mode", "http", "--http-port", "0", "--tls-cert"])
        .args([&certificate])
        .args(["--tls-key"])
        .args([&key])
        .start();
    let port = wait_for("the address", || {
        let said = process.complaints();
        let (_, rest) = said.split_once("https://127.0.0.1:")?;
        Some(rest.split_once('/')?.0.to_owned())
    });
    let origin = format!("https://localhost:{port}");
    let ask = |words: &[&str]| {
        let output = std::process::Command::new("curl")
            .args([
                "--silent",
                "--show-error",
                "--include",
                "--noproxy",
                "*",
                "--cacert",
            ])
            .arg(&certificate)
            .args(words)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let welcome = ask(&[&origin]);
    assert!(
        welcome.contains(&format!("&quot;{origin}/mcp&quot;")),
        "{welcome}"
    );
    let from_here = format!("origin: {origin}");
    let login = ask(&[
        "--data",
        "",
        "--header",
        &from_here,
        &format!("{origin}/console/login"),
    ]);
    assert!(
        login.contains("; Path=/; HttpOnly; SameSite=Strict; Secure"),
        "{login}"
    );
}

/// Sends a request from inside the sandbox, with a login that is good outside.
const REACH: &str = "exec 3<>/dev/tcp/127.0.0.1/PORT; \
                     printf 'GET /console/history HTTP/1.1\\r\\nhost: 127.0.0.1:PORT\\r\\nCOOKIEconnection: close\\r\\n\\r\\n' >&3; \
                     cat <&3";

#[test]
fn a_command_cannot_reach_the_console_even_with_a_login() {
    let served = Served::new(&[]);
    let mut with_token = Browser::new(served.server.address());
    let login = with_token.post("/console/login", &format!("token={}", served.token("operator")));
    with_token.take_cookie(&login);
    let console = Console::open(&served.workspace);
    let with_link = console.browser();

    let open = HttpServer::start(&options(&served.workspace).args(["--mode", "http", "--http-port", "0"]));
    let mut with_button = Browser::new(open.address());
    let login = with_button.post("/console/login", "");
    with_button.take_cookie(&login);

    let mut agent = options(&served.workspace).open(Era::Legacy);
    for browser in [with_token, with_link, with_button] {
        assert_eq!(browser.get("/console/history").status, 200);
        let port = browser.address.rsplit(':').next().unwrap();
        let cookie = browser.cookie.replace("\r\n", "\\r\\n");
        let command = REACH.replace("PORT", port).replace("COOKIE", &cookie);
        let answer = agent.tool(
            "sandboxed_shell",
            json!({"command": command, "execution_mode": "synchronous"}),
        );
        let said = answer.to_string();
        assert!(
            said.contains("HTTP/1.1 403") && said.contains("comes from a command"),
            "{said}"
        );
    }
}

/// Output of a hostile program, one attempt each.
pub(crate) const HOSTILE: [&str; 14] = [
    "<script>document.title='run'</script>",
    "<img src=x onerror=\"document.title='run'\">",
    "</div></main></body><h1>gone</h1>",
    "<svg/onload=alert(1)>",
    "&lt;b&gt; &#x3c;script&#x3e;",
    "\u{1b}]8;;javascript:alert(1)\u{7}click\u{1b}]8;;\u{7}",
    "\u{1b}[31m<b>\u{1b}[0m\"'><i>",
    "\u{1b}]0;<script>title</script>",
    "\u{202e}gnp.exe\u{2066}\u{2069}\u{200f}",
    "\u{0}\u{1}\u{7f}\u{9b}31m\u{feff}\u{200b}",
    "data: forged\r\n\r\nevent: x",
    "\u{2028}\u{2029}]}]",
    "--><!--<![CDATA[<a>]]>",
    "\u{1b}[2J\u{1b}[H\u{1b}[9999;9999Hfar",
];

#[test]
fn nothing_of_a_hostile_output_gets_into_a_page_as_it_is() {
    let workspace = Workspace::new();
    fs::write(workspace.scope().join("hostile"), HOSTILE.join("\n") + "\nend\n").unwrap();
    let mut server = options(&workspace).open(Era::Legacy);
    // Its name, its reason and its arguments are as hostile as its output.
    let id = start(&mut server, "cat hostile; : '<script>\u{202e}</script>'; exit 3");
    server.tool("await", json!({"operation_ids": [id], "timeout_seconds": 30}));
    let console = Console::open(&workspace);
    let browser = console.browser();
    let path = format!("/console/operations/{id}");
    let page = wait_for("the output", || {
        Some(browser.get(&path).body).filter(|page| page.contains(">end</div>"))
    });
    let search = browser
        .get(&format!("{path}?grep=%3Cscript&least=%22%3E%3Cscript%3E"))
        .body;
    let history = browser
        .get("/console/history?text=%22%3E%3Cscript%3E&tool=%27")
        .body;
    let events = browser.send("GET", &format!("{path}/events?from_byte=0&from_line=1"), "", "");
    for (name, page) in [("page", &page), ("search", &search), ("history", &history)] {
        assert_eq!(page.matches("<script").count(), 1, "{name}: {page}");
        check_harmless(name, page);
    }
    assert!(page.contains("U+202E") && page.contains("far</div>"), "{page}");
    // An event has one line of data, whatever was printed.
    let lines: Vec<&str> = events
        .body
        .lines()
        .filter(|line| line.starts_with("data: "))
        .collect();
    assert_eq!(lines.len(), 1, "{}", events.body);
    assert!(
        !events
            .body
            .lines()
            .any(|line| line.contains("forged") && !line.starts_with("data: ["))
    );
}

/// Nothing that was written to act in a page is in it as it was written.
#[track_caller]
fn check_harmless(name: &str, page: &str) {
    for forbidden in [
        "<img",
        "<svg/",
        "<h1>gone",
        "<b>x",
        "<i>",
        "javascript:",
        "<!--",
        "<![CDATA",
    ] {
        assert!(!page.contains(forbidden), "{name} has {forbidden}: {page}");
    }
    for hidden in [
        '\u{202e}', '\u{2066}', '\u{200f}', '\u{0}', '\u{1b}', '\u{9b}', '\u{2028}',
    ] {
        assert!(!page.contains(hidden), "{name} has {hidden:?}: {page}");
    }
}

#[test]
fn nothing_that_others_have_named_gets_into_a_page_as_it_is() {
    const NAME: &str = "<img src=x onerror=alert(1)>\u{202e}\u{1b}[31m\u{9b}\u{2028}\"'><i>";
    const ESCAPED: &str = "&lt;img src=x onerror=alert(1)&gt;";
    let served = Served::new(&["--session-isolation"]);
    served.workspace.write_tool("scan.json", &scanner());
    let tools = served.workspace.tools();
    fs::write(tools.join("<i>\u{202e}.json"), json!({"name": NAME}).to_string()).unwrap();
    let found = format!("hole high CVE-<i>\u{202e} at <b>x\u{202e}: {NAME}; do update\n");
    fs::write(served.workspace.scope().join("found"), found).unwrap();
    fs::write(served.workspace.scope().join("scan.sh"), "cat found; sleep 1000").unwrap();
    let session = served.session_of(&json!({"name": NAME, "version": NAME}));
    let arguments = json!({"script": "scan.sh", "execution_mode": "asynchronous"});
    let started = served.call(&session, "scan", arguments);
    let id = started["result"]["_meta"]["ahma/operation"]["operation_id"].as_str();
    let path = format!(
        "/console/operations/{}",
        id.unwrap_or_else(|| panic!("{started}"))
    );
    let mut browser = Browser::new(served.server.address());
    let login = browser.post("/console/login", &format!("token={}", served.token("operator")));
    browser.take_cookie(&login);
    wait_for("the finding", || {
        browser.get(&path).body.contains("1 high").then_some(())
    });
    // A server describes its tools when they have settled.
    wait_for("the tools", || {
        browser.get("/console/tools").body.contains(ESCAPED).then_some(())
    });
    let check = |path: &str| {
        let page = browser.get(path).body;
        check_harmless(path, &page);
        assert!(page.contains(ESCAPED), "{path}: {page}");
    };
    // The program of a client, a tool file and its mistakes, a finding.
    for path in ["/", "/console/history", "/console/tools", "/console/audit", &path] {
        check(path);
    }
    for path in [
        "/console/now/events".to_owned(),
        format!("{path}/events?from_byte=0"),
    ] {
        let events = BufReader::new(browser.ask("GET", &path, "", ""));
        let mut lines = events.lines().map(Result::unwrap);
        let changes = lines.find_map(|line| line.strip_prefix("data: ").map(str::to_owned));
        let changes: Vec<Value> = serde_json::from_str(&changes.unwrap()).unwrap();
        let html: String = changes
            .iter()
            .filter_map(|change| change["html"].as_str())
            .collect();
        check_harmless(&path, &html);
        assert!(html.contains(ESCAPED), "{path}: {html}");
    }
    let reason: String = url::form_urlencoded::byte_serialize(NAME.as_bytes()).collect();
    let form = format!("form_token={}&reason={reason}", browser.form_token());
    assert_eq!(browser.post(&format!("{path}/cancel"), &form).status, 303);
    wait_for("the reason", || {
        let page = browser.get(&path).body;
        let (_, reason) = page.split_once("class=\"reason\"")?;
        reason.split_once("</p>")?.0.contains(ESCAPED).then_some(())
    });
    for path in ["/console/audit", &path] {
        check(path);
    }
}

/// Operations of three kinds, and the console that shows them: what the search of a page finds.
#[test]
fn every_field_of_a_search_narrows_the_history() {
    let workspace = Workspace::new();
    workspace.write_tool("scan.json", &scanner());
    fs::write(workspace.scope().join("scan.sh"), FINDS).unwrap();
    let mut server = options(&workspace).open(Era::Legacy);
    for command in ["echo alpha", "echo beta; exit 3"] {
        server.tool(
            "sandboxed_shell",
            json!({"command": command, "execution_mode": "synchronous"}),
        );
    }
    server.tool("scan", json!({"script": "scan.sh"}));
    let console = Console::open(&workspace);
    let browser = console.browser();
    let all = ["sh scan.sh", "echo beta; exit 3", "echo alpha"];
    let found = |query: &str| {
        let answer = browser.get(&format!("/console/history?{query}"));
        assert_eq!(answer.status, 200, "{query}: {}", answer.body);
        let commands = all
            .iter()
            .filter(|command| answer.body.contains(&format!(">{command}</a>")));
        commands.copied().collect::<Vec<_>>()
    };
    wait_for("all of them", || {
        let page = browser.get("/console/history").body;
        (!page.contains("state running") && found("") == all).then_some(())
    });
    let empty = "text=&tool=&client=&status=&severity=&since=";
    for (query, expected) in [
        (empty, &all[..]),
        ("text=ALPHA", &all[2..]),
        ("text=scan.sh", &all[..1]),
        ("tool=scan", &all[..1]),
        ("tool=sandboxed_shell", &all[1..]),
        ("tool=sandboxed", &[]),
        ("client=test", &all),
        ("client=someone", &[]),
        ("status=failed", &all[1..2]),
        ("status=timed_out", &[]),
        ("severity=info", &all[..1]),
        ("severity=high", &all[..1]),
        ("severity=critical", &[]),
        ("since=1h", &all),
        ("until=1000", &[]),
        (
            "tool=sandboxed_shell&status=completed&text=echo&client=test&since=7d",
            &all[2..],
        ),
    ] {
        assert_eq!(found(query), expected, "{query}");
    }
    assert!(
        browser
            .get("/console/history?text=ALPHA")
            .body
            .contains(r#"name="text" value="ALPHA""#)
    );
    for malformed in ["status=over", "severity=bad", "since=soon", "until=never"] {
        let answer = browser.get(&format!("/console/history?{malformed}"));
        assert_eq!(answer.status, 400, "{malformed}");
        assert!(answer.body.contains("cannot be"), "{malformed}: {}", answer.body);
    }
}

const FINDS: &str = "echo begun
echo 'hole high CVE-2026-1 at port/80: old server; do update'
echo 'hole low CVE-2026-2 at port/81: chatty banner; do hide'
for i in $(seq 1200); do echo line $i; done
echo over
";

#[test]
fn an_output_is_searched_and_paged_and_findings_are_filtered_and_exported() {
    let workspace = Workspace::new();
    workspace.write_tool("scan.json", &scanner());
    fs::write(workspace.scope().join("scan.sh"), FINDS).unwrap();
    let mut server = options(&workspace).open(Era::Legacy);
    let started = server.tool(
        "scan",
        json!({"script": "scan.sh", "execution_mode": "asynchronous"}),
    );
    let id = started["structuredContent"]["operation_id"].as_str();
    let id = id.unwrap_or_else(|| panic!("{started}")).to_owned();
    server.tool("await", json!({"operation_ids": [id], "timeout_seconds": 30}));
    let console = Console::open(&workspace);
    let browser = console.browser();
    let path = format!("/console/operations/{id}");
    let end = wait_for("the end", || {
        Some(browser.get(&path).body).filter(|page| page.contains("state completed"))
    });
    assert!(
        end.contains(">over</div>") && !end.contains(">begun</div>"),
        "{end}"
    );
    assert!(end.contains("Earlier lines"), "{end}");
    let beginning = browser.get(&format!("{path}?line=1")).body;
    assert!(
        beginning.contains(">begun</div>") && beginning.contains("Later lines"),
        "{beginning}"
    );
    let matches = browser.get(&format!("{path}?grep=line%2012.%24")).body;
    assert!(
        matches.contains("10 matching lines")
            && matches.contains("line 129<")
            && !matches.contains("line 13<"),
        "{matches}"
    );
    // A match leads to the lines around it, and many matches to the next of them.
    assert!(
        matches.contains(&format!("href=\"{path}?line=104#L124\">124</a>line 121<")),
        "{matches}"
    );
    let many = browser.get(&format!("{path}?grep=line")).body;
    assert!(
        many.contains("1200 matching lines") && many.contains(">line 500<") && !many.contains(">line 501<"),
        "{many}"
    );
    let (_, later) = many.split_once("?grep=line&amp;line=").unwrap();
    let later = later.split_once('#').unwrap().0;
    let next = browser.get(&format!("{path}?grep=line&line={later}")).body;
    assert!(
        next.contains(">line 501<")
            && !next.contains(">line 500<")
            && next.contains(&format!("700 matching lines from line {later} on")),
        "{next}"
    );
    assert_eq!(browser.get(&format!("{path}?grep=%28")).status, 400);

    for (query, high, low) in [
        ("", true, true),
        ("?least=high", true, false),
        ("?least=critical", false, false),
    ] {
        let page = browser.get(&format!("{path}{query}")).body;
        let shown = (
            page.contains("<td>CVE-2026-1</td>"),
            page.contains("<td>CVE-2026-2</td>"),
        );
        assert_eq!(shown, (high, low), "{query}: {page}");
        assert!(
            page.contains("1 high") && page.contains("1 low"),
            "{query}: {page}"
        );
    }
    for (form, kind, name) in [
        ("sarif", "application/sarif+json", "sarif"),
        ("junit", "application/xml", "xml"),
        ("json", "application/json", "json"),
        ("text", "application/octet-stream", "txt"),
    ] {
        let answer = browser.get(&format!("{path}/export/{form}"));
        let says = |header: &str| answer.head.contains(header);
        assert!(
            answer.status == 200
                && says(&format!("content-type: {kind}"))
                && says(&format!("attachment; filename=\"{id}.{name}\"")),
            "{form}: {}",
            answer.head
        );
        assert!(answer.body.contains("old server"), "{form}: {}", answer.body);
    }
    let text = browser.get(&format!("{path}/export/text")).body;
    assert!(
        text.starts_with("begun\n") && text.ends_with("line 1200\nover\n"),
        "{text}"
    );
    assert_eq!(browser.get(&format!("{path}/export/pdf")).status, 404);

    // What the sandbox refused is said with a way out.
    let refused = start(&mut server, "touch /etc/forbidden");
    server.tool(
        "await",
        json!({"operation_ids": [refused], "timeout_seconds": 30}),
    );
    wait_for("the hint", || {
        let page = browser.get(&format!("/console/operations/{refused}")).body;
        let (_, hint) = page.split_once("class=\"hint\"")?;
        hint.split_once("</p>")?.0.contains("/etc").then_some(())
    });
}

#[test]
fn a_page_that_is_far_behind_goes_on_near_the_end() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Legacy);
    // Some megabytes.
    let id = start(&mut server, "seq 400000; sleep 1000");
    let console = Console::open(&workspace);
    let browser = console.browser();
    let path = format!("/console/operations/{id}");
    wait_for("the end of the output", || {
        browser.get(&path).body.contains(">400000</div>").then_some(())
    });
    let events = browser.ask("GET", &format!("{path}/events?from_byte=0&from_line=1"), "", "");
    let mut lines = BufReader::new(events).lines();
    let first = lines.find_map(|line| line.unwrap().strip_prefix("data: ").map(str::to_owned));
    let first = first.unwrap();
    assert!(
        first.contains(">400000</div>") && !first.contains(">1</div>"),
        "{} bytes",
        first.len()
    );
}

#[test]
fn a_long_command_is_shown_in_full_without_its_secrets() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Legacy);
    let lines: Vec<String> = (0..40).map(|line| format!("echo <part> {line}")).collect();
    let command = format!(
        "export API_TOKEN=ghp_0123456789abcdefghijklmnopqrstuvwxyz\n{}",
        lines.join("\n")
    );
    let id = start(&mut server, &command);
    let console = Console::open(&workspace);
    let browser = console.browser();
    let page = wait_for("the page", || {
        let answer = browser.get(&format!("/console/operations/{id}"));
        (answer.status == 200 && answer.body.contains("Arguments")).then_some(answer.body)
    });
    let (_, arguments) = page.split_once("<dt>command</dt>").unwrap();
    let arguments = arguments.split_once("</pre>").unwrap().0;
    assert!(
        arguments.contains("\necho &lt;part&gt; 0\n") && arguments.contains("\necho &lt;part&gt; 39\n"),
        "{page}"
    );
    assert!(!page.contains("ghp_0123"), "{page}");
}

#[test]
fn the_console_of_one_user_is_closed_to_others_of_the_machine() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can become another user");
        return;
    }
    let workspace = Workspace::new();
    let console = Console::open(&workspace);
    let (host, port) = console.address.split_once(':').unwrap();
    let link = &console.link;
    let request = format!(
        "exec 3<>/dev/tcp/{host}/{port}; printf 'GET {link} HTTP/1.1\\r\\nhost: {host}:{port}\\r\\nconnection: close\\r\\n\\r\\n' >&3; cat <&3"
    );
    let output = std::process::Command::new("setpriv")
        .args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "bash",
            "-c",
            &request,
        ])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        said.starts_with("HTTP/1.1 403") && said.contains("another user of this machine"),
        "{said}"
    );
    // The code in it was not used up.
    let own = Browser::new(&console.address);
    assert_eq!(own.get(&console.link).status, 303);
}

#[test]
fn the_page_of_the_tools_names_files_with_mistakes_and_their_lines() {
    let workspace = Workspace::new();
    workspace.write_tool(
        "missing.json",
        &json!({"name": "missing", "description": "Is not there.", "command": "no-such-program", "enabled": true,
                "availability_check": "no-such-program --version"}),
    );
    fs::write(
        workspace.tools().join("broken.json"),
        "{\n  \"name\": \"broken\",\n  \"description\": \"<i>Broken</i>.\",\n  \"command\": 7\n}",
    )
    .unwrap();
    let _server = options(&workspace).open(Era::Legacy);
    let console = Console::open(&workspace);
    let browser = console.browser();
    let page = wait_for("the tools", || {
        let page = browser.get("/console/tools").body;
        (page.contains("broken.json") && page.contains("class=\"missing\"")).then_some(page)
    });
    let (_, row) = page.split_once("<td>broken.json</td>").unwrap();
    let row = row.split_once("</tr>").unwrap().0;
    assert!(
        row.contains(">4</td>") && row.contains("expected string"),
        "{row}"
    );
    assert!(page.contains("no-such-program"), "{page}");
    assert!(page.contains("tools are listed to clients, in "), "{page}");
    let sandbox = browser.get("/console/sandbox").body;
    assert!(sandbox.contains("promises:"), "{sandbox}");
}

#[test]
fn the_page_of_the_audit_trail_says_where_it_is_broken() {
    let served = Served::new(&[]);
    let session = served.session();
    for command in ["echo '<b>kept</b>'", "echo after"] {
        served.call(&session, "sandboxed_shell", json!({"command": command}));
    }
    let mut browser = Browser::new(served.server.address());
    let login = browser.post("/console/login", &format!("token={}", served.token("operator")));
    browser.take_cookie(&login);
    let trail = served.workspace.home().join("audit.jsonl");
    wait_for("the trail", || {
        let page = browser.get("/console/audit").body;
        (page.contains("intact") && page.contains("&lt;b&gt;kept&lt;/b&gt;") && page.contains("echo after"))
            .then_some(())
    });
    let text = fs::read_to_string(&trail).unwrap();
    fs::write(&trail, text.replacen("kept", "lost", 1)).unwrap();
    let page = browser.get("/console/audit").body;
    assert!(
        page.contains("broken") && page.contains("does not follow from line"),
        "{page}"
    );
    assert!(page.contains("&lt;b&gt;lost"), "{page}");
    fs::remove_file(&trail).unwrap();
    assert!(browser.get("/console/audit").body.contains("broken"));
}
