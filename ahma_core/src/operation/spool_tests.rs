use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::operation::OperationId;

fn entries(path: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn nothing_is_made_before_it_is_needed_and_nothing_is_left() {
    let temp = tempfile::tempdir().unwrap();
    let state_dir = temp.path().join("state");
    let spool = Spool::new(state_dir.clone());
    assert!(!state_dir.exists());

    let id = OperationId::random();
    let (_, file) = spool.create(&id).unwrap();
    let run_dir = file.path().parent().unwrap().to_owned();
    assert_eq!([&state_dir, &run_dir].map(|path| mode(path)), [0o700, 0o700]);
    assert_eq!(mode(&file.path()), 0o600);
    assert_eq!(entries(&run_dir), [LOCK_NAME, id.as_str()]);

    drop(spool);
    assert!(
        file.open().is_ok(),
        "a file outlives the engine as long as it has a reader"
    );
    drop(file);
    assert_eq!(entries(&state_dir), [""; 0]);
}

#[test]
fn what_dead_servers_left_is_removed_and_nothing_else() {
    let temp = tempfile::tempdir().unwrap();
    let state_dir = temp.path().to_owned();
    let alive = Spool::new(state_dir.clone());
    let (_, alive_file) = alive.create(&OperationId::random()).unwrap();

    let dead = state_dir.join("run-1-00000000");
    fs::create_dir(&dead).unwrap();
    fs::write(dead.join(LOCK_NAME), "").unwrap();
    fs::write(dead.join("op_00000000"), "old output").unwrap();
    let foreign_dir = state_dir.join("run-notes");
    fs::create_dir(&foreign_dir).unwrap();
    fs::write(foreign_dir.join("notes.txt"), "mine").unwrap();
    fs::create_dir(state_dir.join("other")).unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("op_precious"), "keep").unwrap();
    std::os::unix::fs::symlink(outside.path(), state_dir.join("run-link")).unwrap();

    drop(dead_runs(&state_dir).unwrap());
    assert!(!dead.exists());
    assert!(alive_file.path().exists());
    assert_eq!(fs::read_to_string(foreign_dir.join("notes.txt")).unwrap(), "mine");
    assert!(state_dir.join("other").exists());
    assert!(outside.path().join("op_precious").exists());
}

#[test]
fn a_directory_that_vanishes_does_not_end_the_search() {
    let temp = tempfile::tempdir().unwrap();
    assert!(dead_run(temp.path().join("run-1-00000000")).unwrap().is_none());

    // Opened before another server removed it, and locked after.
    let dead = temp.path().join("run-1-00000001");
    fs::create_dir(&dead).unwrap();
    let lock = create_lock(&dead.join(LOCK_NAME)).unwrap();
    drop(dead_run(dead.clone()).unwrap().unwrap());
    assert!(RunDir::hold(dead, lock).unwrap().is_none());
}

#[test]
fn a_server_that_starts_leaves_those_that_live_alone() {
    let temp = tempfile::tempdir().unwrap();
    let state_dir = temp.path();
    std::thread::scope(|scope| {
        let making = scope.spawn(|| {
            for _ in 0..500 {
                let run_dir = RunDir::create(state_dir).unwrap();
                assert!(dead_run(run_dir.path.clone()).unwrap().is_none());
                assert_eq!(entries(&run_dir.path), [LOCK_NAME]);
            }
        });
        while !making.is_finished() {
            drop(dead_runs(state_dir).unwrap());
        }
    });
    assert_eq!(entries(state_dir), [""; 0]);
}

#[test]
fn no_server_waits_for_another() {
    let temp = tempfile::tempdir().unwrap();
    let state_dir = temp.path().to_owned();
    let held = create_lock(&state_dir.join(LOCK_NAME)).unwrap();
    flock(&held, FlockOperation::LockExclusive).unwrap();
    let (tx, rx) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let made = Spool::new(state_dir).create(&OperationId::random());
        tx.send(made.is_ok())
    });
    assert_eq!(rx.recv_timeout(test_support::TEST_TIMEOUT), Ok(true));
}

#[test]
fn a_spool_that_cannot_be_made_is_an_error_not_a_panic() {
    let temp = tempfile::tempdir().unwrap();
    let blocked = temp.path().join("file");
    fs::write(&blocked, "").unwrap();
    assert!(
        Spool::new(blocked.join("state"))
            .create(&OperationId::random())
            .is_err()
    );
}
