use std::time::Duration;

use super::*;
use crate::history::{database::Database, reader::tests::Made};

#[test]
fn what_a_dead_server_left_is_removed_and_a_living_ones_is_not() {
    let mut made = Made::new();
    made.add(4);
    made.execute("UPDATE operations SET server = 'alive' WHERE number > 2");
    made.execute("UPDATE operations SET stored = 'plain' WHERE number IN (1, 3)");
    made.execute("UPDATE operations SET stored = 'zstd' WHERE number IN (2, 4)");
    for server in ["gone", "alive", "forgotten"] {
        made.execute(&format!(
            "INSERT INTO servers (server, pid, scope, version, started_at) VALUES ('{server}', 1, '/', '0', 0)"
        ));
        made.execute(&format!(
            "INSERT INTO stops (id, server, reason) VALUES ('op_{server}', '{server}', NULL)"
        ));
    }
    let directory = &made.reader.directory;
    let files = [
        (
            "gone",
            [
                "op_0000000000",
                "op_0000000000.zst",
                "op_0000000001.zst",
                "op_0000000001",
                "op_0000000009",
            ],
        ),
        (
            "alive",
            [
                "op_0000000002",
                "op_0000000002.zst",
                "op_0000000003.zst",
                "op_0000000003",
                "op_0000000009",
            ],
        ),
    ];
    for (server, names) in files {
        fs::create_dir_all(directory.output_of(server)).unwrap();
        for name in names {
            fs::write(directory.output_of(server).join(name), "printed").unwrap();
        }
    }
    let lock = directory.lock("alive").unwrap();
    let to_compress = clean_up(&made.reader.database.connection, directory, "this").unwrap();

    assert_eq!(
        to_compress,
        [("gone".to_owned(), OperationId::recalled("op_0000000000"))]
    );
    let left = |server: &str| {
        let mut names = names_in(&directory.output_of(server));
        names.sort();
        names
    };
    assert_eq!(
        left("gone"),
        ["op_0000000000", "op_0000000000.zst", "op_0000000001.zst"]
    );
    assert_eq!(left("alive").len(), 5);
    let rows = |query: &str| {
        let mut statement = made.reader.database.connection.prepare(query).unwrap();
        let names = statement.query_map([], |row| row.get(0)).unwrap();
        names.collect::<Result<Vec<String>, _>>().unwrap()
    };
    assert_eq!(
        rows("SELECT server FROM servers ORDER BY server"),
        ["alive", "gone"]
    );
    assert_eq!(rows("SELECT server FROM stops"), ["alive"]);
    drop(lock);
}

#[test]
fn servers_that_stay_keep_no_writer_waiting() {
    let mut made = Made::new();
    made.add(2);
    made.execute(
        "INSERT INTO servers (server, pid, scope, version, started_at) VALUES ('gone', 1, '/', '0', 0)",
    );
    let directory = &made.reader.directory;
    let writer = Database::open(directory).unwrap();
    writer.connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    let looking = &made.reader.database.connection;
    looking.busy_timeout(Duration::ZERO).unwrap();
    assert_eq!(clean_up(looking, directory, "this").unwrap(), []);
}

#[test]
fn what_ran_silently_ended_when_its_server_was_last_alive() {
    let mut made = Made::new();
    made.add(1);
    made.execute("UPDATE operations SET state = 'running', started_at = created_at, ended_at = NULL");
    let directory = &made.reader.directory;
    let lock = directory.lock("gone").unwrap();
    lock.give_sign_of_life();
    let alive_at = directory.last_sign_of_life("gone").unwrap();
    // Its process is gone, and nothing could be tidied up.
    lock.die();
    let row = made.reader.operation(None, "op_0000000000").unwrap().unwrap();
    assert_eq!(row.state, OperationState::Interrupted);
    assert_eq!(row.ended_at.map(to_millis), Some(to_millis(alive_at)));
    let ran = alive_at.duration_since(row.started_at.unwrap()).unwrap();
    assert!(ran.abs_diff(row.duration) <= Duration::from_millis(1), "{row:?}");
}
