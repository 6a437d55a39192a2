use super::*;

fn history() -> (tempfile::TempDir, HistoryDir) {
    let temp = tempfile::tempdir().unwrap();
    let directory = HistoryDir::below(temp.path());
    (temp, directory)
}

fn moved_aside(directory: &HistoryDir, what: &str) -> usize {
    let is_aside = |name: &String| name.starts_with(&format!("history.db.{what}-"));
    let names = super::super::directory::names_in(directory.root());
    names.into_iter().filter(is_aside).count()
}

#[test]
fn a_new_database_is_of_this_version_and_closed_to_others() {
    use std::os::unix::fs::PermissionsExt as _;
    let (_temp, directory) = history();
    let database = Database::open(&directory).unwrap();
    assert_eq!(check_version(&database.connection).unwrap(), MIGRATIONS.len());
    let mode = fs::metadata(directory.root()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    assert!(database.is_at(&directory));
    // A second one, at the same time.
    Database::open(&directory).unwrap();
}

#[test]
fn a_damaged_database_is_moved_aside() {
    let (_temp, directory) = history();
    directory.create().unwrap();
    fs::write(
        directory.database(),
        "this is no database, but it is long enough to be one".repeat(100),
    )
    .unwrap();
    let database = Database::open(&directory).unwrap();
    assert_eq!(moved_aside(&directory, "damaged"), 1);
    assert_eq!(check_version(&database.connection).unwrap(), MIGRATIONS.len());
}

#[test]
fn a_newer_database_is_moved_aside_by_a_server_and_left_by_those_who_look() {
    let (_temp, directory) = history();
    let database = Database::open(&directory).unwrap();
    database
        .connection
        .pragma_update(None, "user_version", 99)
        .unwrap();
    drop(database);
    let looked = Database::open_existing(&directory);
    assert!(
        matches!(looked, Err(HistoryError::Newer { found: 99, .. })),
        "{looked:?}"
    );
    assert_eq!(moved_aside(&directory, "newer"), 0);
    let old = Database::open(&directory).unwrap();
    assert_eq!(moved_aside(&directory, "newer"), 1);
    assert!(old.is_at(&directory));
}

#[test]
fn a_database_that_was_replaced_is_noticed() {
    let (_temp, directory) = history();
    let database = Database::open(&directory).unwrap();
    fs::remove_file(directory.database()).unwrap();
    assert!(!database.is_at(&directory));
    Database::open(&directory).unwrap();
    assert!(!database.is_at(&directory));
}
