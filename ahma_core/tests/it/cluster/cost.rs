//! What an operation asks of the server between front end and worker. Each message on the way to a result makes it later.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

use serde_json::{Value, json};
use test_support::{Era, Nats, quiet_port};

use super::pool::{Cluster, accepted};

/// A front end publishes the operation and its job, reads its output, and notes that the result was collected; a worker asks
/// for a job, claims it, reads the log twice, takes the job out of the queue, and publishes output and end. That is 11; the
/// rest is for heartbeats and stewards.
const MESSAGES: u64 = 14;

const CALLS: u64 = 20;

/// Messages that clients have sent to the server so far.
fn messages(monitor: u16) -> u64 {
    let mut connection = TcpStream::connect(("127.0.0.1", monitor)).unwrap();
    connection.write_all(b"GET /varz HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let figures: Value = serde_json::from_str(body).unwrap();
    figures["in_msgs"].as_u64().unwrap()
}

#[test]
fn a_short_operation_takes_few_messages() {
    let monitor = quiet_port();
    let Some(nats) = Nats::start_with(&["-m", &monitor.to_string()]) else {
        return;
    };
    let cluster = Cluster::on(nats, &[]);
    let _worker = cluster.worker();
    let mut client = cluster.front_end(Era::Modern);
    let echo = json!({"command": "echo hi", "execution_mode": "synchronous"});
    let mut call = || {
        accepted(|| client.tool("sandboxed_shell", echo.clone()));
    };
    call();
    // On a busy machine a round takes long, and heartbeats count for more.
    let rounds = (0..5).map(|_| {
        let before = messages(monitor);
        (0..CALLS).for_each(|_| call());
        (messages(monitor) - before) / CALLS
    });
    let fewest = rounds.min().unwrap();
    assert!(fewest <= MESSAGES, "{fewest} messages for each operation");
}
