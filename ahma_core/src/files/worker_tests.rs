use std::os::unix::fs::symlink;

use super::*;
use crate::call::ReadRequest;

fn read_request(paths: &[&Path]) -> ReadRequest {
    ReadRequest {
        paths: paths.iter().map(|path| path.to_path_buf()).collect(),
        from_line: 1,
        max_lines: 1_000,
        max_bytes: 7_000,
    }
}

fn answer_to(request: &FileRequest, directory: &Path) -> String {
    let answer = serve(request);
    let text = answer.text.replace(&format!("{}/", directory.display()), "");
    format!("{text}exit {}", answer.exit_code)
}

#[test]
fn files_are_read_by_numbered_lines() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    fs::write(path("a"), "one\r\ntwo\n\nfour").unwrap();
    fs::write(path("empty"), "").unwrap();
    fs::write(path("binary"), b"\x7fELF\0\0").unwrap();
    fs::write(path("utf16"), b"\xff\xfea\0\n\0").unwrap();
    let read = |request: ReadRequest| answer_to(&FileRequest::Read(request), dir.path());
    insta::assert_snapshot!(read(read_request(&[&path("a")])), @r"
    1	one
    2	two
    3	
    4	four
    exit 0
    ");
    let part = ReadRequest {
        from_line: 2,
        max_lines: 2,
        ..read_request(&[&path("a")])
    };
    insta::assert_snapshot!(read(part), @r#"
    2	two
    3	
    (lines 2–3 of 4; file_read {"path": "a", "from_line": 4} continues)
    exit 0
    "#);
    let several = read_request(&[&path("empty"), &path("binary"), &path("utf16"), &path("none")]);
    insta::assert_snapshot!(read(several), @r"
    ==> empty <==
    (empty file)

    ==> binary <==
    binary file, 6 bytes

    ==> utf16 <==
    1	a

    ==> none <==
    none: No such file or directory (os error 2)
    exit 1
    ");
    let beyond = ReadRequest {
        from_line: 9,
        ..read_request(&[&path("a")])
    };
    insta::assert_snapshot!(read(beyond), @r"
    (the file has 4 lines)
    exit 0
    ");
}

#[test]
fn a_huge_file_is_read_within_the_budget() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("huge");
    let mut text = format!("{}\n", "x".repeat(1_000_000));
    text.push_str(&"line\n".repeat(200_000));
    fs::write(&path, text).unwrap();
    let answer = serve(&FileRequest::Read(read_request(&[&path])));
    assert!(answer.text.len() < 7_500, "{} bytes", answer.text.len());
    assert!(answer.text.starts_with("1\txxx"));
    assert!(answer.text.contains("… (long line, cut)\n2\tline\n"));
    assert!(
        answer.text.contains("of 200001;"),
        "{}",
        &answer.text[answer.text.len() - 200..]
    );
}

#[test]
fn writes_say_what_they_did() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &str| {
        let request = FileRequest::Write {
            path: dir.path().join(name),
            content: content.into(),
        };
        answer_to(&request, dir.path())
    };
    assert_eq!(write("deep/a", "one\ntwo\n"), "created deep/a: 2 lines\nexit 0");
    assert_eq!(write("deep/a", "one\n"), "replaced deep/a: 1 line\nexit 0");
    assert_eq!(
        write("deep", "x"),
        format!(
            "{}: not a regular file\nexit 1",
            dir.path().join("deep").display()
        )
        .replace(&format!("{}/", dir.path().display()), "")
    );
    symlink("nowhere", dir.path().join("link")).unwrap();
    assert_eq!(write("link", "x"), "link: a link that leads nowhere\nexit 1");
}

#[test]
fn edits_go_through_links_and_keep_them() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("real"), "a\nb\nc\n").unwrap();
    symlink("real", dir.path().join("link")).unwrap();
    fs::hard_link(dir.path().join("real"), dir.path().join("second")).unwrap();
    let request = FileRequest::Edit {
        path: dir.path().join("link"),
        edits: vec![TextEdit {
            old: "b\n".into(),
            new: "x\ny\n".into(),
            all: false,
        }],
    };
    insta::assert_snapshot!(answer_to(&request, dir.path()), @r"
    edited link (it had other hard links, which keep the old content)
    2	x
    3	y
    exit 0
    ");
    assert!(
        fs::symlink_metadata(dir.path().join("link"))
            .unwrap()
            .is_symlink()
    );
    assert_eq!(
        fs::read_to_string(dir.path().join("real")).unwrap(),
        "a\nx\ny\nc\n"
    );
    assert_eq!(
        fs::read_to_string(dir.path().join("second")).unwrap(),
        "a\nb\nc\n"
    );
}

#[test]
fn utf16_and_byte_order_marks_survive_an_edit() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let edit = || {
        serve(&FileRequest::Edit {
            path: path.clone(),
            edits: vec![TextEdit {
                old: "b".into(),
                new: "é".into(),
                all: false,
            }],
        })
    };
    for (before, after) in [
        (&b"\xff\xfea\0b\0"[..], &b"\xff\xfea\0\xe9\0"[..]),
        (b"\xef\xbb\xbfab\r\n", b"\xef\xbb\xbfa\xc3\xa9\r\n"),
        (b"\xe9b\n", b"\xe9\xc3\xa9\n"),
    ] {
        fs::write(&path, before).unwrap();
        assert_eq!(edit().exit_code, 0);
        assert_eq!(fs::read(&path).unwrap(), after);
    }
    fs::write(&path, b"b\0").unwrap();
    assert_eq!(edit().exit_code, 1);
    assert_eq!(fs::read(&path).unwrap(), b"b\0");
}

#[test]
fn a_patch_changes_all_files_or_none() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().display();
    fs::write(dir.path().join("a"), "1\n2\n3\n").unwrap();
    fs::write(dir.path().join("b"), "x\n").unwrap();
    let patch = |second_old: &str| FileRequest::Patch {
        patch: format!(
            "*** Begin Patch\n*** Update File: {at}/a\n@@\n-2\n+two\n*** Update File: {at}/b\n*** Move to: {at}/sub/c\n@@\n-{second_old}\n+y\n\
             *** Add File: {at}/d\n+new\n*** End Patch\n"
        ),
    };
    insta::assert_snapshot!(answer_to(&patch("wrong"), dir.path()), @r"
    b: its lines do not occur in the file
    nothing was changed
    exit 1
    ");
    assert_eq!(fs::read_to_string(dir.path().join("a")).unwrap(), "1\n2\n3\n");
    assert!(!dir.path().join("d").exists());
    insta::assert_snapshot!(answer_to(&patch("x"), dir.path()), @r"
    patched a
    2	two
    moved b to sub/c
    1	y
    created d
    exit 0
    ");
    assert_eq!(fs::read_to_string(dir.path().join("a")).unwrap(), "1\ntwo\n3\n");
    assert_eq!(fs::read_to_string(dir.path().join("sub/c")).unwrap(), "y\n");
    assert!(!dir.path().join("b").exists());
}
