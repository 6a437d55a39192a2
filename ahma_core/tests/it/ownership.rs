//! Whose an operation is: two principals with real tokens, in two scopes each, do not learn of each other over HTTP.

use std::{collections::BTreeSet, fs};

use serde_json::{Value, json};
use test_support::{Client, HttpServer, Roots, Workspace};

use crate::{calls::start, history::awaited, session::options};

/// A principal in a scope, with what it ran.
struct Party {
    client: Client,
    /// In commands and outputs of this party alone.
    word: String,
    ids: [String; 2],
}

/// Answers that a party got to questions about the others.
#[derive(Default)]
struct Asked {
    count: usize,
}

impl Asked {
    /// Asks, and looks for anything of the others in the answer.
    #[track_caller]
    fn ask(&mut self, client: &mut Client, method: &str, params: Value, others: &BTreeSet<String>) -> String {
        self.count += 1;
        let question = params.to_string();
        let answer = client.call(method, params).to_string();
        let shown = others
            .iter()
            .find(|word| answer.contains(*word) && !question.contains(*word));
        assert_eq!(shown, None, "{question} is answered: {answer}");
        answer
    }
}

fn tool(name: &str, arguments: &Value) -> (&'static str, Value) {
    ("tools/call", json!({"name": name, "arguments": arguments}))
}

/// Every way to ask for one operation.
fn questions_about(id: &str) -> Vec<(&'static str, Value)> {
    let read = |uri: String| ("resources/read", json!({"uri": uri}));
    vec![
        tool("await", &json!({"operation_ids": [id], "timeout_seconds": 0})),
        tool("status", &json!({"operation_ids": [id]})),
        tool("output", &json!({"operation_id": id})),
        tool("output", &json!({"operation_id": id, "grep": "."})),
        tool("output", &json!({"operation_id": id, "what": "findings"})),
        tool("cancel", &json!({"operation_id": id})),
        read(format!("ahma://operations/{id}")),
        read(format!("ahma://operations/{id}/output")),
        (
            "resources/subscribe",
            json!({"uri": format!("ahma://operations/{id}")}),
        ),
        ("tasks/get", json!({"taskId": id})),
    ]
}

/// Every way to ask for some.
fn lists_and_searches(word: &str) -> Vec<(&'static str, Value)> {
    vec![
        tool("await", &json!({"timeout_seconds": 0})),
        tool("status", &json!({})),
        tool("status", &json!({"since": "7d"})),
        tool("status", &json!({"tool": "sandboxed_shell"})),
        tool("status", &json!({"text": word})),
        tool(
            "status",
            &json!({"text": word, "since": "1h", "tool": "sandboxed_shell"}),
        ),
        ("resources/list", json!({})),
        ("resources/read", json!({"uri": "ahma://operations"})),
    ]
}

#[test]
fn a_thousand_questions_show_nothing_of_another_principal_or_scope() {
    let (workspace, scopes) = (Workspace::new(), [Workspace::new(), Workspace::new()]);
    let tokens = workspace.home().join("tokens.json");
    let issue = |name: &str| {
        let new = options(&workspace).args(["token", "new", "--name", name, "--file"]);
        let issued = new.args([&tokens]).command().output().unwrap();
        String::from_utf8(issued.stdout).unwrap().trim().to_owned()
    };
    let names = ["alice", "bob"].map(|name| (name, issue(name)));
    let server = HttpServer::start(
        &options(&workspace)
            .args([
                "--mode",
                "http",
                "--http-port",
                "0",
                "--session-isolation",
                "--tokens-file",
            ])
            .args([&tokens]),
    );
    let mut parties = Vec::new();
    for (name, token) in &names {
        for (scope, number) in scopes.iter().zip(1..) {
            let root = scope.scope();
            let mut client = server.session_as(token, Roots::One(&root));
            let word = format!("word-of-{name}-in-{number}");
            let ended = start(&mut client, &format!("echo {word}"));
            awaited(&mut client, &ended);
            let go = format!("go-{name}");
            let running = format!("echo {word}; until [ -e {go} ]; do sleep 0.05; done; echo done");
            let ids = [ended, start(&mut client, &running)];
            parties.push(Party { client, word, ids });
        }
    }
    let mut asked = Asked::default();
    for asking in 0..parties.len() {
        let words = |party: &Party| party.ids.iter().chain([&party.word]).cloned().collect::<Vec<_>>();
        let others: Vec<&Party> = (0..parties.len())
            .filter(|party| *party != asking)
            .map(|party| &parties[party])
            .collect();
        let secrets: BTreeSet<String> = others.iter().flat_map(|party| words(party)).collect();
        let ids: Vec<String> = others.iter().flat_map(|party| party.ids.clone()).collect();
        let searched: Vec<String> = others.iter().map(|party| party.word.clone()).collect();
        let client = &mut parties[asking].client;
        for id in &ids {
            // One character away from it: an id that nothing has.
            let unused = format!(
                "{}{}",
                &id[..id.len() - 1],
                if id.ends_with('2') { '3' } else { '2' }
            );
            for ((method, about), (_, about_none)) in
                questions_about(id).into_iter().zip(questions_about(&unused))
            {
                let answer = asked.ask(client, method, about, &secrets).replace(id, "ID");
                let none = asked
                    .ask(client, method, about_none, &secrets)
                    .replace(&unused, "ID");
                let without_number = |answer: &str| {
                    let mut answer: Value = serde_json::from_str(answer).unwrap();
                    answer["id"].take();
                    answer
                };
                assert_eq!(without_number(&answer), without_number(&none), "{method} {id}");
            }
            for cut in 1..id.len() {
                let (method, params) = tool("output", &json!({"operation_id": &id[..cut]}));
                asked.ask(client, method, params, &secrets);
            }
        }
        for word in &searched {
            for cut in 1..word.len() {
                let text = word[..cut].to_owned();
                let (method, params) = tool("status", &json!({"text": text, "since": "7d"}));
                asked.ask(client, method, params, &secrets);
            }
            for (method, params) in lists_and_searches(word) {
                asked.ask(client, method, params, &secrets);
            }
        }
    }
    assert!(asked.count >= 1_000, "{} questions", asked.count);

    // They were there all the time and have not been stopped: each party finds its own, in another session too.
    for (name, _) in &names {
        for scope in &scopes {
            fs::write(scope.scope().join(format!("go-{name}")), "").unwrap();
        }
    }
    for (number, party) in parties.into_iter().enumerate() {
        let Party {
            word,
            ids,
            mut client,
        } = party;
        let report = awaited(&mut client, &ids[1]);
        assert_eq!(report["status"], "completed", "{report}");
        drop(client);
        let (_, token) = &names[number / 2];
        let root = scopes[number % 2].scope();
        let mut later = server.session_as(token, Roots::One(&root));
        for (id, printed) in ids.iter().zip([format!("{word}\n"), format!("{word}\ndone\n")]) {
            assert_eq!(awaited(&mut later, id)["output"], printed);
        }
        let listed = later.tool("status", json!({"text": word}));
        let listed = listed["structuredContent"]["operations"]
            .as_array()
            .unwrap()
            .len();
        assert_eq!(listed, 2, "{word}");
    }
}
