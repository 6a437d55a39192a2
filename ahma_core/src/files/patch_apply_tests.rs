use super::*;
use crate::files::patch::{PatchAction, parse};

/// Applies hunks given as the text below `--- a/x`, `+++ b/x`.
fn unified(content: &str, hunks: &str) -> Result<String, String> {
    patched(content, &format!("--- a/x\n+++ b/x\n{hunks}"))
}

fn marked(content: &str, hunks: &str) -> Result<String, String> {
    patched(
        content,
        &format!("*** Begin Patch\n*** Update File: x\n{hunks}*** End Patch\n"),
    )
}

fn patched(content: &str, patch: &str) -> Result<String, String> {
    let files = parse(patch).unwrap();
    let PatchAction::Update { hunks, .. } = &files[0].action else {
        panic!("not an update: {files:?}");
    };
    let patched = apply(content.as_bytes(), hunks).map_err(|error| error.to_string())?;
    Ok(String::from_utf8(patched.content).unwrap())
}

#[test]
fn a_hunk_is_found_where_its_lines_are() {
    let check = |content: &str, hunks: &str, expected: &str| {
        assert_eq!(unified(content, hunks).as_deref(), Ok(expected), "{hunks}")
    };
    check("a\nb\nc\n", "@@ -2 +2 @@\n-b\n+x\n", "a\nx\nc\n");
    // The line number is off by more than the file is long.
    check("a\nb\nc\n", "@@ -900,7 +1,1 @@\n-b\n+x\n", "a\nx\nc\n");
    // Of two places, the one nearest to the number.
    check("a\nz\na\nz\na\n", "@@ -5 +5 @@\n-a\n+x\n", "a\nz\na\nz\nx\n");
    check("a\nz\na\nz\na\n", "@@ -3 +3 @@\n-a\n+x\n", "a\nz\nx\nz\na\n");
    // Later hunks move with the lines that earlier ones add.
    check(
        "1\n2\na\n3\na\n",
        "@@ -1,2 +1,4 @@\n 1\n+n\n+n\n 2\n@@ -5 +7 @@\n-a\n+x\n",
        "1\nn\nn\n2\na\n3\nx\n",
    );
    // No old lines: after the line that is named.
    check("a\nb\n", "@@ -1,0 +2 @@\n+x\n", "a\nx\nb\n");
    check("", "@@ -0,0 +1 @@\n+x\n", "x\n");
    // Context keeps the white space of the file.
    check("\ta  \nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+x\n", "\ta  \nx\n");
    check(
        "a\r\nb\r\n",
        "@@ -1,2 +1,3 @@\n a\n-b\n+x\n+y\n",
        "a\r\nx\r\ny\r\n",
    );
}

#[test]
fn the_last_newline_is_as_the_patch_says_or_as_it_was() {
    assert_eq!(
        unified("a\nb", "@@ -2 +2 @@\n-b\n\\ No newline at end of file\n+x\n").as_deref(),
        Ok("a\nx\n")
    );
    assert_eq!(
        unified("a\nb\n", "@@ -2 +2 @@\n-b\n+x\n\\ No newline at end of file\n").as_deref(),
        Ok("a\nx")
    );
    assert_eq!(marked("a\nb", "@@\n-b\n+x\n").as_deref(), Ok("a\nx"));
    assert_eq!(marked("a\nb", "@@\n b\n+x\n").as_deref(), Ok("a\nb\nx"));
    assert_eq!(marked("a\nb\n", "@@\n-b\n+x\n").as_deref(), Ok("a\nx\n"));
}

#[test]
fn an_anchor_chooses_among_equal_lines() {
    let content = "fn a() {\n    x\n}\nfn b() {\n    x\n}\n";
    assert_eq!(
        marked(content, "@@ fn b() {\n-    x\n+    y\n").as_deref(),
        Ok("fn a() {\n    x\n}\nfn b() {\n    y\n}\n")
    );
    assert_eq!(
        marked(content, "@@\n+end\n*** End of File\n").as_deref(),
        Ok(&*format!("{content}end\n"))
    );
}

#[test]
fn a_hunk_that_fits_nowhere_says_why() {
    insta::assert_snapshot!(unified("one\ntwo\nthree\n", "@@ -1 +1 @@\n one\n-2\n+x\n").unwrap_err(), @r"
    its lines do not occur in the file
    nearest: line 1
    1	one
    2	two
    ");
    insta::assert_snapshot!(unified("x\n", "@@ -1 +1 @@\n-b\n+x\n").unwrap_err(), @"its new lines are in the file already");
    insta::assert_snapshot!(marked("x\n", "@@ fn gone\n-x\n+y\n").unwrap_err(), @"no line is `fn gone`, as its `@@` line says");
    insta::assert_snapshot!(unified("a\nb\n", "@@ -1 +1 @@\n-a\n+x\n@@ -2 +2 @@\n-z\n+y\n").unwrap_err(), @"hunk 2 of 2: its lines do not occur in the file");
}

#[test]
fn patches_that_diff_makes_give_what_diff_compared() {
    use rand::{RngExt as _, SeedableRng as _, rngs::SmallRng};
    let mut rng = SmallRng::seed_from_u64(11);
    for round in 0..2_000 {
        let mut text = || -> String {
            let mut text: String = (0..rng.random_range(0..12))
                .map(|_| format!("{}\n", rng.random_range(0..4)))
                .collect();
            if rng.random_bool(0.2) {
                text.pop();
            }
            text
        };
        let (old, new) = (text(), text());
        if old == new || old.is_empty() || new.is_empty() {
            continue;
        }
        let diff = similar::TextDiff::from_lines(&old, &new)
            .unified_diff()
            .context_radius(2)
            .header("a/x", "b/x")
            .to_string();
        assert_eq!(
            patched(&old, &diff).as_deref(),
            Ok(&*new),
            "round {round}\n{diff}"
        );
    }
}
