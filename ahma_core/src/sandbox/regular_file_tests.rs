use std::{fs, io::ErrorKind, os::unix::fs::symlink, process::Command};

use super::read_regular_file;

#[test]
fn only_a_short_plain_file_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name);
    fs::write(place("text"), "four").unwrap();
    fs::create_dir(place("directory")).unwrap();
    let made = Command::new("mkfifo").arg(place("pipe")).status();
    assert!(made.unwrap().success());
    symlink("/dev/zero", place("endless")).unwrap();
    assert_eq!(read_regular_file(&place("text"), 4).unwrap(), b"four");
    for (name, most, kind) in [
        ("text", 3, ErrorKind::FileTooLarge),
        ("directory", 10, ErrorKind::InvalidInput),
        ("pipe", 10, ErrorKind::InvalidInput),
        ("endless", 10, ErrorKind::InvalidInput),
        ("missing", 10, ErrorKind::NotFound),
    ] {
        assert_eq!(
            read_regular_file(&place(name), most).unwrap_err().kind(),
            kind,
            "{name}"
        );
    }
}
