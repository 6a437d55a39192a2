//! Mistakes that servers of this kind are known for. Each has a test, here or where its subject is tested.

use std::{fs, path::Path};

use serde_json::{Value, json};
use test_support::{Era, Server, Workspace};

use crate::session::{echo, options};

/// The mistake, the file of its test, the test.
#[rustfmt::skip]
const TESTED: [(&str, &str, &str); 23] = [
    ("only the thread that set up the sandbox is confined", "ahma_core/tests/it/mistakes.rs", "every_one_of_many_commands_is_confined"),
    ("/dev/null cannot be written", "ahma_core/tests/it/mistakes.rs", "what_every_script_needs_works"),
    ("cancel marks a record and leaves the process", "ahma_core/tests/it/cancelling.rs", "cancel_answers_when_the_processes_are_gone"),
    ("cancelling one request cancels another", "ahma_core/tests/it/cancelling.rs", "cancelling_a_request_stops_its_own_synchronous_command_and_nothing_else"),
    ("timeouts are ignored", "ahma_core/tests/it/endings.rs", "a_timeout_keeps_what_was_printed"),
    ("required arguments and types are not enforced", "ahma_core/tests/it/calls.rs", "every_mistake_in_the_arguments_is_listed"),
    ("a tool without subcommands cannot be called", "ahma_core/tests/it/calls.rs", "a_synchronous_call_answers_with_its_outcome"),
    ("arrays are joined by spaces", "ahma_core/tests/it/mistakes.rs", "each_item_of_an_array_is_one_argument"),
    ("an extra array `args` goes past every check", "ahma_core/tests/it/mistakes.rs", "no_argument_goes_past_the_tool_file"),
    ("text added to a script breaks it", "ahma_core/tests/it/mistakes.rs", "what_every_script_needs_works"),
    ("fifty megabytes in one result", "ahma_core/tests/it/output.rs", "a_long_output_is_all_there_and_the_result_is_short"),
    ("history is never freed", "ahma_core/tests/it/operations.rs", "history_is_bounded_and_its_files_go_with_it"),
    ("the start deletes files of the project", "ahma_core/tests/it/mistakes.rs", "a_session_leaves_the_project_as_it_was"),
    ("ending a session during a call blocks other sessions", "ahma_http_bridge/tests/it/load.rs", "ending_sessions_in_the_middle_of_calls_delays_no_other"),
    ("every answer over HTTP is 50 ms late", "ahma_http_bridge/tests/it/load.rs", "no_answer_waits_for_another_to_be_acknowledged"),
    ("origins that only begin like an allowed one pass", "ahma_http_bridge/tests/it/contract.rs", "foreign_pages_are_kept_out"),
    ("403 where 404 is due", "ahma_http_bridge/tests/it/contract.rs", "a_session_id_is_a_uuid_and_needed_with_isolation"),
    ("a notification is answered with a body", "ahma_http_bridge/tests/it/contract.rs", "notifications_and_responses_are_accepted_without_a_body"),
    ("any number of sessions", "ahma_http_bridge/tests/it/contract.rs", "sessions_over_the_cap_are_told_to_come_back"),
    ("unused sessions stay for ever", "ahma_http_bridge/tests/it/isolation.rs", "sessions_have_their_own_children_and_idle_ones_end"),
    ("a child that crashed is not replaced", "ahma_http_bridge/tests/it/misbehaving.rs", "a_crash_is_told_to_every_waiter_and_the_session_goes_on"),
    ("tools are listed in another order every time", "ahma_core/tests/it/session.rs", "tools_are_listed_in_the_same_order_in_every_run"),
    ("bytes that are no UTF-8 end the server", "ahma_core/tests/it/output.rs", "bytes_that_are_no_text_end_nothing"),
];

#[test]
fn every_known_mistake_has_its_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for (mistake, file, test) in TESTED {
        let source = fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        let (before, _) = source
            .split_once(&format!("fn {test}("))
            .unwrap_or_else(|| panic!("{mistake}: there is no test {test} in {file}"));
        let line_before = before.trim_end().lines().last().unwrap_or_default();
        let attributes = before.lines().rev().take(4).collect::<String>();
        assert!(
            attributes.contains("test"),
            "{mistake}: {test} is no test; above it: {line_before}"
        );
    }
}

fn shell(server: &mut Server, command: &str) -> Value {
    server.tool(
        "sandboxed_shell",
        json!({"command": command, "execution_mode": "synchronous"}),
    )
}

#[test]
fn every_one_of_many_commands_is_confined() {
    let workspace = Workspace::new();
    let outside = tempfile::tempdir().unwrap();
    for tier in ["full", "core"] {
        let mut server = options(&workspace)
            .args(["--sandbox-tier", tier])
            .open(Era::Legacy);
        let ids: Vec<i64> = (0..200)
            .map(|number| {
                let file = outside.path().join(number.to_string());
                let arguments = json!({"command": format!("echo x > {}", file.display()), "execution_mode": "synchronous"});
                server.request("tools/call", json!({"name": "sandboxed_shell", "arguments": arguments}))
            })
            .collect();
        for id in ids {
            assert_eq!(server.answer(id)["result"]["isError"], true);
        }
    }
    let written: Vec<_> = fs::read_dir(outside.path()).unwrap().collect();
    assert!(written.is_empty(), "{written:?}");
}

#[test]
fn what_every_script_needs_works() {
    let workspace = Workspace::new();
    for tier in ["full", "core"] {
        let mut server = options(&workspace)
            .args(["--sandbox-tier", tier])
            .open(Era::Modern);
        for (script, expected) in [
            ("echo gone > /dev/null; echo kept", "kept\n"),
            ("cat <<END\none $((1 + 1)) three\nEND", "one 2 three\n"),
            ("cat <<'END'\n$HOME\nEND\n# a comment at the end", "$HOME\n"),
            ("echo out; echo err >&2 # both", "out\nerr\n"),
            (
                "head -c 4 /dev/zero | wc -c; [ -r /dev/urandom ] && echo random",
                "4\nrandom\n",
            ),
            ("f=$(mktemp) && echo x > \"$f\" && cat \"$f\"", "x\n"),
        ] {
            let result = shell(&mut server, script);
            assert_eq!(
                result["structuredContent"]["output"], expected,
                "{tier}: {script}"
            );
        }
    }
}

#[test]
fn each_item_of_an_array_is_one_argument() {
    let workspace = Workspace::new();
    workspace.write_tool("say.json", &echo("say"));
    let mut server = options(&workspace).open(Era::Modern);
    let words = ["a b", "", "c'd\"e", "$(id)", "x;y", "new\nline"];
    let result = server.tool("say", json!({"format": "<%s>", "words": words}));
    let expected: String = words.iter().map(|word| format!("<{word}>")).collect();
    assert_eq!(result["structuredContent"]["output"], expected.as_str());
}

#[test]
fn no_argument_goes_past_the_tool_file() {
    let workspace = Workspace::new();
    workspace.write_tool("say.json", &echo("say"));
    let mut server = options(&workspace).open(Era::Modern);
    for extra in ["args", "subcommand", "command", "_args", "options"] {
        let result = server.tool("say", json!({"format": "%s", extra: ["--version"]}));
        assert_eq!(result["isError"], true, "{extra}: {result}");
        assert!(
            result["content"][0]["text"].as_str().unwrap().contains(extra),
            "{result}"
        );
    }
}

#[test]
fn a_session_leaves_the_project_as_it_was() {
    let workspace = Workspace::new();
    let scope = workspace.scope();
    for name in ["build.log", "ahma.log", "server.log.1", ".hidden.log"] {
        fs::write(scope.join(name), "mine").unwrap();
    }
    let picture = || {
        let mut names: Vec<_> = fs::read_dir(&scope)
            .unwrap()
            .map(|entry| {
                let path = entry.unwrap().path();
                let text = fs::read_to_string(&path).unwrap_or_default();
                (path, text)
            })
            .collect();
        names.sort();
        names
    };
    let before = picture();
    for era in Era::BOTH {
        let mut server = options(&workspace).args(["--debug"]).open(era);
        shell(&mut server, "true");
        server.close_input();
        server.wait();
    }
    assert_eq!(picture(), before);
}
