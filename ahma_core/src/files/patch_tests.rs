use super::*;

fn context(text: &str) -> HunkLine {
    HunkLine::Context(text.into())
}
fn remove(text: &str) -> HunkLine {
    HunkLine::Remove(text.into())
}
fn add(text: &str) -> HunkLine {
    HunkLine::Add(text.into())
}

fn update(path: &str, hunks: Vec<Hunk>) -> FilePatch {
    FilePatch {
        path: path.into(),
        action: PatchAction::Update {
            hunks,
            move_to: None,
            executable: None,
        },
    }
}

#[test]
fn a_unified_diff_is_read_whatever_its_counts_say() {
    let text = "diff --git a/x.txt b/x.txt\nindex 1..2 100644\n--- a/x.txt\n+++ b/x.txt\n@@ -3,99 +3,1 @@ fn main\n a\n-b\n+c\n\n\
                @@ -9 +9 @@\n-z\n+y\n\\ No newline at end of file\n";
    let hunks = vec![
        Hunk {
            line: Some(3),
            lines: vec![context("a"), remove("b"), add("c")],
            ..Hunk::default()
        },
        Hunk {
            line: Some(9),
            lines: vec![remove("z"), add("y")],
            no_final_newline: true,
            ..Hunk::default()
        },
    ];
    assert_eq!(parse(text), Ok(vec![update("x.txt", hunks)]));
}

#[test]
fn paths_keep_their_names_unless_they_are_marked_as_git_marks_them() {
    let path = |text: &str| parse(text).unwrap()[0].path.clone();
    assert_eq!(path("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"), "x");
    assert_eq!(
        path("--- src/x\t2026-01-01\n+++ src/x\t2026-01-02\n@@ -1 +1 @@\n-a\n+b\n"),
        "src/x"
    );
    assert_eq!(path("--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+b\n"), "new");
}

#[test]
fn files_are_added_deleted_moved_and_made_executable() {
    let text = "diff --git a/run b/run\nnew file mode 100755\n--- /dev/null\n+++ b/run\n@@ -0,0 +1,2 @@\n+a\n+b\n\
                diff --git a/old b/old\ndeleted file mode 100644\n--- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n\
                diff --git a/p b/q\nsimilarity index 100%\nrename from p\nrename to q\n\
                diff --git a/m b/m\nold mode 100644\nnew mode 100755\n";
    let moved = |path: &str, move_to: Option<&str>, executable| FilePatch {
        path: path.into(),
        action: PatchAction::Update {
            hunks: Vec::new(),
            move_to: move_to.map(Into::into),
            executable,
        },
    };
    let expected = vec![
        FilePatch {
            path: "run".into(),
            action: PatchAction::Add {
                content: "a\nb\n".into(),
                executable: true,
            },
        },
        FilePatch {
            path: "old".into(),
            action: PatchAction::Delete,
        },
        moved("p", Some("q"), None),
        moved("m", None, Some(true)),
    ];
    assert_eq!(parse(text), Ok(expected));
}

#[test]
fn the_begin_patch_form_is_read() {
    let text = "*** Begin Patch\n*** Add File: new.txt\n+one\n+\n+two\n*** Update File: a.rs\n*** Move to: b.rs\n@@ fn main() {\n     x();\n-    y();\n+    z();\n\
                *** End of File\n*** Delete File: gone\n*** End Patch\n";
    let expected = vec![
        FilePatch {
            path: "new.txt".into(),
            action: PatchAction::Add {
                content: "one\n\ntwo\n".into(),
                executable: false,
            },
        },
        FilePatch {
            path: "a.rs".into(),
            action: PatchAction::Update {
                hunks: vec![Hunk {
                    anchor: Some("fn main() {".into()),
                    lines: vec![context("    x();"), remove("    y();"), add("    z();")],
                    at_end: true,
                    ..Hunk::default()
                }],
                move_to: Some("b.rs".into()),
                executable: None,
            },
        },
        FilePatch {
            path: "gone".into(),
            action: PatchAction::Delete,
        },
    ];
    assert_eq!(parse(text), Ok(expected));
}

#[test]
fn a_removed_line_of_dashes_is_no_header() {
    let files = parse("--- a/x.md\n+++ b/x.md\n@@ -1,2 +1,1 @@\n---- title\n-- item\n+item\n").unwrap();
    let hunk = Hunk {
        line: Some(1),
        lines: vec![remove("--- title"), remove("- item"), add("item")],
        ..Hunk::default()
    };
    assert_eq!(files, [update("x.md", vec![hunk])]);
}

#[test]
fn what_is_no_patch_is_named_with_its_line() {
    let refused = |text: &str| parse(text).unwrap_err().to_string();
    insta::assert_snapshot!(refused("hello\n"), @"line 1 of the patch: neither a unified diff (`--- a/file`, `+++ b/file`, `@@`) nor a `*** Begin Patch` block");
    insta::assert_snapshot!(refused("@@ -1 +1 @@\n-a\n+b\n"), @"line 1 of the patch: a hunk without `--- a/file` and `+++ b/file` above it");
    insta::assert_snapshot!(refused("--- a/x\n+++ b/x\n@@ -1 +1 @@\nabc\n"), @"line 4 of the patch: a line of a hunk starts with a space, `+` or `-`");
    insta::assert_snapshot!(refused("*** Begin Patch\nhello\n"), @"line 2 of the patch: expected `*** Add File:`, `*** Update File:`, `*** Delete File:` or `*** End Patch`");
    insta::assert_snapshot!(refused("diff --git a/x b/x\nGIT binary patch\n"), @"line 2 of the patch: binary patches are not supported");
}
