//! Traffic that passes through when all is well.

use serde_json::{Value, json};
use test_support::{Era, Roots, Workspace, wait_for};

use super::{
    ends::{Bridge, dead_address},
    mounting, status_of, text_of, wait_for_tool,
};
use crate::session::{echo, options};

#[test]
fn remote_tools_follow_the_local_ones_and_work_like_them() {
    let bridge = Bridge::start();
    let mut say = echo("say");
    say["annotations"] = json!({"title": "Say it", "readOnly": true});
    bridge.workspace.write_tool("say.json", &say);
    for era in Era::BOTH {
        let workspace = Workspace::new();
        workspace.write_tool("zeta.json", &echo("zeta"));
        let mut server = mounting(&workspace, &json!({"far": {"url": bridge.url()}})).open(era);
        wait_for_tool(&mut server, "far_say");
        let expected = [
            "await",
            "cancel",
            "output",
            "status",
            "sandboxed_shell",
            "zeta",
            "far_await",
            "far_cancel",
            "far_output",
            "far_sandboxed_shell",
            "far_say",
            "far_status",
        ];
        let mut names = server.tool_names();
        names.retain(|name| !name.contains("file_") && !name.ends_with("readonly_shell"));
        assert_eq!(names, expected, "{era:?}");

        let listed = server.call("tools/list", json!({}));
        let tool = |name: &str| {
            let tools = listed["result"]["tools"].as_array().expect("a list");
            tools
                .iter()
                .find(|tool| tool["name"] == name)
                .expect("listed")
                .clone()
        };
        assert_eq!(tool("far_say")["inputSchema"]["required"], json!(["format"]));
        assert_eq!(tool("far_say")["annotations"]["readOnlyHint"], true);

        let said = server.tool("far_say", json!({"format": "%s,%s", "words": ["a", "b c"]}));
        assert_eq!(said["structuredContent"]["output"], "a,b c", "{said}");
        let refused = server.tool("far_say", json!({}));
        assert_eq!(refused["isError"], true);
        assert!(text_of(&refused).contains("`format` is required"), "{refused}");
        let unknown = server.call("tools/call", json!({"name": "far_nothing", "arguments": {}}));
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");

        let status = status_of(&mut server, "far");
        assert_eq!(
            (&status["state"], status["tools"].is_u64()),
            (&json!("ready"), true)
        );
        assert_eq!(status["transport"], "Streamable HTTP");
    }
}

#[test]
fn progress_arrives_under_the_clients_own_token() {
    let bridge = Bridge::start();
    for era in Era::BOTH {
        let workspace = Workspace::new();
        let mut server = mounting(&workspace, &json!({"far": {"url": bridge.url()}})).open(era);
        wait_for_tool(&mut server, "far_sandboxed_shell");
        let script = "echo step 1; while ! test -e seen; do sleep 0.05; done; rm seen; echo step 2";
        let id = server.request(
            "tools/call",
            json!({
                "name": "far_sandboxed_shell",
                "arguments": {"command": script, "execution_mode": "synchronous"},
                "_meta": {"progressToken": "mine"},
            }),
        );
        let progress = server.expect("progress with the newest line", |message| {
            let text = message["params"]["message"].as_str();
            message["method"] == "notifications/progress" && text.is_some_and(|text| text.contains("step"))
        });
        assert_eq!(progress["params"]["progressToken"], "mine");
        std::fs::write(bridge.workspace.scope().join("seen"), "").expect("writable");
        let answer = server.answer(id);
        assert_eq!(
            answer["result"]["structuredContent"]["output"],
            "step 1\nstep 2\n"
        );
    }
}

#[test]
fn cancelling_reaches_the_remote_command_and_no_other() {
    let bridge = Bridge::start();
    let workspace = Workspace::new();
    let mut server = mounting(&workspace, &json!({"far": {"url": bridge.url()}})).open(Era::Legacy);
    wait_for_tool(&mut server, "far_sandboxed_shell");
    let mut start = |name: &str| {
        let script = format!(
            "echo > {name}.started; while ! test -e go; do sleep 0.05; done; echo > {name}.done; sleep 1000"
        );
        let arguments = json!({"command": script, "execution_mode": "synchronous"});
        let id = server.request(
            "tools/call",
            json!({"name": "far_sandboxed_shell", "arguments": arguments}),
        );
        let started = bridge.workspace.scope().join(format!("{name}.started"));
        wait_for("the command to start", || started.exists().then_some(()));
        id
    };
    let (first, _second) = (start("first"), start("second"));
    server.notify("notifications/cancelled", json!({"requestId": first}));
    wait_for("the first command to be cancelled", || {
        let told = server.tool("far_status", json!({}));
        let operations = told["structuredContent"]["operations"].as_array().cloned();
        let is_cancelled = |operation: &Value| operation["status"] == "cancelled";
        operations?.iter().any(is_cancelled).then_some(())
    });
    std::fs::write(bridge.workspace.scope().join("go"), "").expect("writable");
    // The second one goes on, and by then the first would have as well.
    let done = |name: &str| bridge.workspace.scope().join(format!("{name}.done")).exists();
    wait_for("the other command to go on", || done("second").then_some(()));
    assert!(!done("first"), "the cancelled command went on");
}

#[test]
fn a_new_remote_tool_is_announced() {
    for era in Era::BOTH {
        let bridge = Bridge::start();
        let workspace = Workspace::new();
        let mut server = mounting(&workspace, &json!({"far": {"url": bridge.url()}})).open(era);
        wait_for_tool(&mut server, "far_status");
        if era == Era::Modern {
            let wanted = json!({"notifications": {"toolsListChanged": true}});
            server.request("subscriptions/listen", wanted);
            server.notification("notifications/subscriptions/acknowledged");
        }
        // What the first connection announced is not what is meant.
        let _ = server.others(std::time::Duration::from_millis(50));
        bridge.workspace.write_tool("fresh.json", &echo("fresh"));
        server.notification("notifications/tools/list_changed");
        wait_for_tool(&mut server, "far_fresh");
    }
}

#[test]
fn a_local_tool_keeps_its_name() {
    let far = Workspace::new();
    far.write_tool("say.json", &echo("say"));
    let bridge = Bridge::start_in(far, &[]);
    let workspace = Workspace::new();
    let mut local = echo("far_say");
    local["description"] = json!("Ours.");
    workspace.write_tool("far_say.json", &local);
    let servers = json!({"far": {"url": bridge.url()}, "far_sandboxed": {"url": bridge.url()}});
    let mut server = mounting(&workspace, &servers).open(Era::Legacy);
    wait_for_tool(&mut server, "far_status");
    wait_for_tool(&mut server, "far_sandboxed_status");
    let names = server.tool_names();
    assert_eq!(names.iter().filter(|name| *name == "far_say").count(), 1);
    let listed = server.call("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().expect("a list");
    let ours = tools
        .iter()
        .find(|tool| tool["name"] == "far_say")
        .expect("listed");
    assert!(
        ours["description"]
            .as_str()
            .is_some_and(|text| text.contains("Ours.")),
        "{ours}"
    );
    assert_eq!(status_of(&mut server, "far")["hidden_tools"], json!(["say"]));
    let said = server.tool("far_say", json!({"format": "here"}));
    assert!(
        said["_meta"]["ahma/sandbox"]["scope"] == json!(workspace.scope()),
        "{said}"
    );
}

#[test]
fn the_programs_of_a_server_end_with_it() {
    let workspace = Workspace::new();
    let mut server = mounting(&workspace, &json!({"prog": program(&workspace)})).open(Era::Legacy);
    wait_for_tool(&mut server, "prog_where");
    let pid = std::fs::read_to_string(workspace.home().join("grandchild")).expect("written");
    let answer = server.tool("prog_where", json!({}));
    assert_eq!(
        text_of(&answer),
        "/ 1",
        "not in the scope, and it mounts nothing itself"
    );
    server.close_input();
    server.wait();
    let process = format!("/proc/{}/stat", pid.trim());
    wait_for("the grandchild to be gone", || {
        let stat = std::fs::read_to_string(&process);
        stat.map_or(true, |stat| stat.contains(") Z ")).then_some(())
    });
}

/// Says what it is asked, and leaves a grandchild that would outlive it.
fn program(workspace: &Workspace) -> Value {
    let script = workspace.home().join("server.sh");
    std::fs::write(&script, PROGRAM).expect("writable");
    json!({"command": "sh", "args": [script, workspace.home()]})
}

const PROGRAM: &str = r#"
echo started >> "$1/starts"
sleep 1000 & echo $! > "$1/grandchild"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  case "$line" in
    *'"initialize"'*) answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}';;
    *'"tools/list"'*) answer '{"tools":[{"name":"where","inputSchema":{"type":"object"}}]}';;
    *'"tools/call"'*) answer '{"content":[{"type":"text","text":"'"$PWD $AHMA_NO_MCP_CONFIG"'"}]}';;
    *'"id"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}\n' "$id";;
  esac
done
"#;

#[test]
fn mounted_servers_are_not_mounted_again() {
    let far = Bridge::start();
    let middle = Workspace::new();
    let file = middle.home().join("mcp.json");
    std::fs::write(&file, json!({"servers": {"far": {"url": far.url()}}}).to_string()).expect("writable");
    let flags = ["--mcp-config", file.to_str().expect("plain")];
    let middle = Bridge::start_in(middle, &flags);
    // A plain client sees what the shared child of the bridge has mounted.
    wait_for_tool(&mut middle.server.sessionless(), "far_status");

    let workspace = Workspace::new();
    let mut server = mounting(&workspace, &json!({"mid": {"url": middle.url()}})).open(Era::Legacy);
    wait_for_tool(&mut server, "mid_status");
    let again: Vec<_> = (server.tool_names().into_iter())
        .filter(|name| name.starts_with("mid_far"))
        .collect();
    assert!(again.is_empty(), "{again:?}");
}

#[test]
fn an_isolated_session_mounts_once_it_has_its_scope() {
    let workspace = Workspace::new();
    let file = workspace.home().join("mcp.json");
    let servers = json!({"servers": {"prog": program(&workspace)}});
    std::fs::write(&file, servers.to_string()).expect("writable");
    let flags = [
        "--session-isolation",
        "--mcp-config",
        file.to_str().expect("plain"),
    ];
    let bridge = Bridge::start_in(workspace, &flags);
    let project = Workspace::new();
    let mut session = bridge.server.session(Roots::One(&project.scope()));
    wait_for_tool(&mut session, "prog_where");
    // The process that answered before the scope was known has started nothing.
    let starts = std::fs::read_to_string(bridge.workspace.home().join("starts")).expect("written");
    assert_eq!(starts, "started\n");
}

#[test]
fn a_bridge_does_not_mount_itself_and_a_server_without_a_scope_mounts_nothing() {
    let address = dead_address();
    let itself = format!("http://{address}/mcp");
    let entry = json!({"servers": {"Ahama": {"url": itself}, "other": {"url": "http://127.0.0.1:1/mcp"}}});
    let workspace = Workspace::new();
    std::fs::write(workspace.scope().join("mcp.json"), entry.to_string()).expect("writable");
    let bridge = Bridge::start_in(workspace, &["--http-port", &address.port().to_string()]);
    let status = bridge.server.sessionless().tool("status", json!({}));
    let mounted: Vec<_> = (status["structuredContent"]["remote_servers"]
        .as_array()
        .expect("a list")
        .iter())
    .map(|remote| remote["name"].clone())
    .collect();
    assert_eq!(mounted, ["other"]);

    let workspace = Workspace::new();
    let mut deferred = mounting(&workspace, &entry["servers"])
        .args(["--defer-sandbox"])
        .open(Era::Legacy);
    let status = deferred.tool("status", json!({}));
    assert!(
        status["structuredContent"].get("remote_servers").is_none(),
        "{status}"
    );
    let mut opted_out = options(&bridge.workspace)
        .args(["--no-mcp-config"])
        .open(Era::Legacy);
    let status = opted_out.tool("status", json!({}));
    assert!(
        status["structuredContent"].get("remote_servers").is_none(),
        "{status}"
    );
}
