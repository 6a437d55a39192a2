use std::os::unix::process::ExitStatusExt as _;

use test_support::TEST_TIMEOUT;
use tokio::io::AsyncReadExt as _;

use super::*;

const LONG: Duration = TEST_TIMEOUT;
const NONE: Duration = Duration::ZERO;

fn shell(script: &str) -> (ChildProcess, Pipes) {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    ChildProcess::spawn(command).unwrap()
}

/// Reads until the script has said that it is ready.
async fn ready(pipes: &mut Pipes) {
    let mut word = [0; 6];
    timeout(TEST_TIMEOUT, pipes.stdout.read_exact(&mut word))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(&word, b"ready\n");
}

async fn finish(process: ChildProcess, grace: Grace) -> ExitStatus {
    timeout(TEST_TIMEOUT, process.finish(grace))
        .await
        .unwrap()
        .unwrap()
}

#[tokio::test]
async fn a_child_ends_as_gently_as_it_can() {
    for (script, after_eof, after_term, expected) in [
        // It leaves at the end of its input.
        ("echo ready; read line; exit 3", LONG, LONG, (Some(3), None)),
        // It does not, but obeys TERM.
        ("echo ready; exec sleep 1000", NONE, LONG, (None, Some(15))),
        // It obeys neither.
        (
            "trap '' TERM; echo ready; while :; do sleep 1000; done",
            NONE,
            Duration::from_millis(50),
            (None, Some(9)),
        ),
    ] {
        let (process, mut pipes) = shell(script);
        ready(&mut pipes).await;
        drop(pipes.stdin);
        let status = finish(
            process,
            Grace {
                after_eof,
                after_term,
            },
        )
        .await;
        assert_eq!((status.code(), status.signal()), expected, "{script}");
    }
}

#[tokio::test]
async fn a_group_dies_although_its_leader_is_gone() {
    for polling in [false, true] {
        let (mut process, mut pipes) = shell("sleep 1000 & echo ready; exit 0");
        if polling {
            process.exit = ExitWatch::Polling;
        }
        ready(&mut pipes).await;
        timeout(TEST_TIMEOUT, process.exited()).await.unwrap();
        let group = process.pid();
        assert!(test_kill_process_group(group).is_ok(), "not reaped, not swept");
        let grace = Grace {
            after_eof: NONE,
            after_term: NONE,
        };
        assert_eq!(finish(process, grace).await.code(), Some(0));
        // Its output ends when the last process that holds it does.
        let mut rest = Vec::new();
        timeout(TEST_TIMEOUT, pipes.stdout.read_to_end(&mut rest))
            .await
            .unwrap()
            .unwrap();
    }
}

#[tokio::test]
async fn dropping_kills_the_group() {
    let (process, mut pipes) = shell("sleep 1000 & echo ready; wait");
    ready(&mut pipes).await;
    drop(process);
    let mut rest = Vec::new();
    timeout(TEST_TIMEOUT, pipes.stdout.read_to_end(&mut rest))
        .await
        .unwrap()
        .unwrap();
}
