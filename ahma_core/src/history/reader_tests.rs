use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use super::super::retention::{KeepLimits, Retention, RetentionStep};
use super::*;
use crate::operation::{OperationState, Principal};

/// A history made by hand: much faster than by running commands.
pub(in crate::history) struct Made {
    _temp: tempfile::TempDir,
    pub(in crate::history) reader: HistoryReader,
}

impl Made {
    pub(in crate::history) fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let directory = HistoryDir::below(temp.path());
        let database = Database::open(&directory).unwrap();
        Self {
            _temp: temp,
            reader: HistoryReader { directory, database },
        }
    }

    /// Adds operations of each of two principals in each of two scopes, with a finding in every tenth.
    pub(in crate::history) fn add(&mut self, count: usize) {
        let start = to_millis(SystemTime::now()) - count as i64 * 1_000;
        let transaction = self.reader.database.connection.transaction().unwrap();
        {
            let mut insert = transaction
                .prepare(
                    "INSERT INTO operations (id, server, principal, scope, tool, command, directory, state, created_at, \
                     updated_at, ended_at, duration_ms, output_bytes, output_lines, critical, high, medium, low, info, \
                     keeps_running, stored, stored_bytes, search) \
                     VALUES (?1, 'gone', ?2, ?3, ?4, ?5, ?3, ?6, ?7, ?7, ?7, 5, 10, 1, 0, 0, 0, 0, 0, 0, 'row', 1024, ?8)",
                )
                .unwrap();
            let mut find = transaction
                .prepare("INSERT INTO findings (number, place, severity, finding) VALUES (?, 0, ?, ?)")
                .unwrap();
            for number in 0..count {
                let tool = ["cargo_build", "git_status", "nmap_scan"][number % 3];
                let command = format!("{tool} --job {number} --target host-{}.example", number % 997);
                let state = if number % 50 == 0 { "failed" } else { "completed" };
                insert
                    .execute(params![
                        format!("op_{number:010}"),
                        ["", "ci"][number % 2],
                        ["/one", "/two"][number / 2 % 2],
                        tool,
                        command,
                        state,
                        start + number as i64 * 1_000,
                        format!("{tool}\n{command}"),
                    ])
                    .unwrap();
                if number % 10 == 0 {
                    let severity = if number % 1_000 == 0 { "high" } else { "low" };
                    let finding = format!(r#"{{"severity":"{severity}","id":"F{number}","title":"t"}}"#);
                    let rank = if severity == "high" { 3 } else { 1 };
                    find.execute(params![transaction.last_insert_rowid(), rank, finding])
                        .unwrap();
                }
            }
        }
        transaction.commit().unwrap();
    }

    /// Drops the oldest until all take this many bytes; gives how many there were, and the longest time in one piece.
    fn drop_to(&mut self, bytes: u64) -> (usize, Duration) {
        let limits = KeepLimits {
            age: Duration::MAX,
            bytes,
        };
        let HistoryReader { directory, database } = &mut self.reader;
        let mut retention = Retention::begin(&database.connection, limits).unwrap();
        let mut longest = Duration::ZERO;
        loop {
            let start = Instant::now();
            let step = retention.step(&mut database.connection, directory).unwrap();
            longest = longest.max(start.elapsed());
            if let RetentionStep::Done { dropped } = step {
                return (dropped, longest);
            }
        }
    }

    pub(in crate::history) fn execute(&self, statement: &str) {
        self.reader.database.connection.execute(statement, []).unwrap();
    }

    pub(in crate::history) fn count(&self) -> usize {
        let query = "SELECT count(*) FROM operations";
        let count = self
            .reader
            .database
            .connection
            .query_row(query, [], |row| row.get(0));
        count.unwrap()
    }

    fn ids(&self, filter: OperationFilter) -> Vec<String> {
        let rows = self.reader.operations(&filter).unwrap();
        rows.iter().map(|row| row.id.to_string()).collect()
    }
}

fn owner(principal: &str, scope: &str) -> Owner {
    Owner {
        principal: match principal {
            "" => Principal::default(),
            name => Principal::named(name),
        },
        scope: PathBuf::from(scope),
    }
}

#[test]
fn every_owner_finds_its_own_and_nothing_else() {
    let mut made = Made::new();
    made.add(1_000);
    let owners = [
        owner("", "/one"),
        owner("ci", "/one"),
        owner("", "/two"),
        owner("ci", "/two"),
    ];
    let mut all = 0;
    for asker in &owners {
        let mine = OperationFilter {
            owner: Some(asker.clone()),
            limit: 10_000,
            ..OperationFilter::default()
        };
        for text in [
            None,
            Some("job"),
            Some("gone"),
            Some("/one"),
            Some("%"),
            Some("'"),
        ] {
            let filter = OperationFilter {
                text: text.map(str::to_owned),
                ..mine.clone()
            };
            let rows = made.reader.operations(&filter).unwrap();
            assert!(rows.iter().all(|row| row.owner == *asker), "{text:?}");
            all += if text.is_none() { rows.len() } else { 0 };
        }
        for number in 0..1_000 {
            let id = format!("op_{number:010}");
            let found = made.reader.operation(Some(asker), &id).unwrap();
            let is_mine = asker.principal.name().unwrap_or_default() == ["", "ci"][number % 2]
                && asker.scope.to_str() == Some(["/one", "/two"][number / 2 % 2]);
            assert_eq!(found.is_some(), is_mine, "{id} for {asker:?}");
        }
        let filter = FindingFilter {
            owner: Some(asker.clone()),
            least: Severity::Info,
            since: None,
            limit: 10_000,
        };
        for found in made.reader.findings(&filter).unwrap() {
            let row = made
                .reader
                .operation(None, found.operation.as_str())
                .unwrap()
                .unwrap();
            assert_eq!(row.owner, *asker);
        }
    }
    assert_eq!(all, 1_000);
}

#[test]
fn what_a_dead_server_ran_is_interrupted() {
    let mut made = Made::new();
    made.add(3);
    let running =
        "UPDATE operations SET state = 'running', started_at = created_at, ended_at = NULL WHERE number = 2";
    made.execute(running);
    let found = made.reader.operation(None, "op_0000000001").unwrap().unwrap();
    assert_eq!(found.state, OperationState::Interrupted);
    assert!(found.ended_at.is_some() && found.reason.is_some(), "{found:?}");

    // One that lives has its lock.
    let lock = made.reader.directory.lock("gone").unwrap();
    made.execute(running);
    let found = made.reader.operation(None, "op_0000000001").unwrap().unwrap();
    assert_eq!(found.state, OperationState::Running);
    drop(lock);
    let found = made.reader.operation(None, "op_0000000001").unwrap().unwrap();
    assert_eq!(found.state, OperationState::Interrupted);
}

#[test]
fn the_order_is_that_of_the_numbers_whatever_the_clock_does() {
    let mut made = Made::new();
    made.add(5);
    let earlier = "UPDATE operations SET created_at = created_at - 1000000000 WHERE number > 3";
    made.execute(earlier);
    let filter = OperationFilter {
        limit: 3,
        ..OperationFilter::default()
    };
    assert_eq!(
        made.ids(filter),
        ["op_0000000004", "op_0000000003", "op_0000000002"]
    );
}

/// The figures are printed, not asserted: `cargo test -p ahma_core hundred_thousand -- --nocapture`.
#[test]
fn a_hundred_thousand_operations_are_found_completely() {
    let mut made = Made::new();
    let now = SystemTime::now();
    made.add(100_000);
    let limit = 50;
    let everything = OperationFilter {
        limit,
        ..OperationFilter::default()
    };
    let searches = [
        ("list", everything.clone(), limit),
        (
            "list of an owner",
            OperationFilter {
                owner: Some(owner("ci", "/two")),
                ..everything.clone()
            },
            limit,
        ),
        (
            "by tool and state",
            OperationFilter {
                tool: Some("nmap_scan".to_owned()),
                state: Some(OperationState::Failed),
                ..everything.clone()
            },
            limit,
        ),
        (
            "of the last minutes",
            OperationFilter {
                since: now.checked_sub(Duration::from_secs(30)),
                ..everything.clone()
            },
            // Counted by the clock that made them.
            usize::MAX,
        ),
        (
            "by a text that one has",
            OperationFilter {
                text: Some("--JOB 7 ".to_owned()),
                ..everything.clone()
            },
            1,
        ),
        (
            "by a text that none has",
            OperationFilter {
                text: Some("nothing like it".to_owned()),
                ..everything
            },
            0,
        ),
    ];
    for (name, filter, expected) in searches {
        let start = Instant::now();
        let found = made.ids(filter).len();
        println!("{name}: {found} in {:.1?}", start.elapsed());
        assert!(
            found == expected || expected == usize::MAX && found > 0,
            "{name}: {found}"
        );
    }
    let start = Instant::now();
    let filter = FindingFilter {
        owner: None,
        least: Severity::High,
        since: None,
        limit: 1_000,
    };
    let found = made.reader.findings(&filter).unwrap().len();
    println!("high findings: {found} in {:.1?}", start.elapsed());
    assert_eq!(found, 100);
    let start = Instant::now();
    let (dropped, longest) = made.drop_to(50_000 << 10);
    println!(
        "dropped half: {dropped} in {:.1?}, at most {longest:.1?} at a time",
        start.elapsed()
    );
    assert_eq!(dropped, 50_000);
}

#[test]
fn what_is_dropped_makes_room_and_what_runs_stays() {
    let mut made = Made::new();
    made.add(3_000);
    made.execute("UPDATE operations SET collected_at = ended_at");
    let running =
        "UPDATE operations SET state = 'running', ended_at = NULL, server = 'alive' WHERE number = 1";
    made.execute(running);
    let _lock = made.reader.directory.lock("alive").unwrap();
    let pages = |made: &Made| -> i64 {
        let pragma = |name: &str| {
            made.reader
                .database
                .connection
                .pragma_query_value(None, name, |row| row.get(0))
        };
        assert_eq!(pragma("freelist_count"), Ok(0));
        pragma("page_count").unwrap()
    };
    let before = pages(&made);
    assert_eq!(made.drop_to(0).0, 2_999);
    assert!(
        pages(&made) < before / 2,
        "{before} pages and {} after",
        pages(&made)
    );
    assert_eq!(
        made.ids(OperationFilter {
            limit: 10,
            ..OperationFilter::default()
        }),
        ["op_0000000000"]
    );
}
