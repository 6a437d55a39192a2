use super::*;

#[test]
fn spellings_of_one_name_are_the_same() {
    for spelling in ["all-features", "all_features", "--all-features", "allFeatures"] {
        assert_eq!(plain_name(spelling), "all_features", "{spelling}");
    }
    // `-i` and `-I` are two options of one program.
    assert_eq!(
        [plain_name("-I"), plain_name("i"), plain_name("")],
        ["I", "i", ""]
    );
}

#[test]
fn a_suggestion_goes_by_meaning_before_letters() {
    const META: [&str; 3] = ["execution_mode", "timeout_seconds", "working_directory"];
    let cargo_test = ["package", "test", "filter", "args", "no-run"];
    let git_log = ["max-count", "grep", "author", "revisions", "paths"];
    let git_grep = ["pattern", "paths", "ignore-case"];
    let git_commit = ["message", "all", "paths"];
    let file_edit = ["path", "edits"];
    let pytest = ["keyword", "verbose", "tests"];
    for (own, name, expected) in [
        (&cargo_test[..], "test_name", Some("filter")),
        (&cargo_test, "testName", Some("filter")),
        (&["test"], "test_name", None),
        (&cargo_test, "crate", Some("package")),
        (&cargo_test, "cwd", Some("working_directory")),
        (&cargo_test, "dir", Some("working_directory")),
        (&cargo_test, "timeout", Some("timeout_seconds")),
        (&cargo_test, "timeout_ms", Some("timeout_seconds")),
        (&cargo_test, "timout_seconds", Some("timeout_seconds")),
        (&cargo_test, "run_in_background", Some("execution_mode")),
        (&cargo_test, "no_rn", Some("no-run")),
        (&cargo_test, "v", None),
        (&git_log, "limit", Some("max-count")),
        (&git_log, "n", Some("max-count")),
        (&git_log, "query", Some("grep")),
        (&git_log, "file", Some("paths")),
        (&git_log, "autor", Some("author")),
        (&git_grep, "query", Some("pattern")),
        (&git_grep, "filename", Some("paths")),
        (&git_commit, "msg", Some("message")),
        (&file_edit, "filepath", Some("path")),
        (&file_edit, "old_string", Some("edits")),
        (&pytest, "filter", Some("keyword")),
        (&pytest, "v", Some("verbose")),
        (&pytest, "completely_different", None),
    ] {
        let known: Vec<&str> = own.iter().chain(&META).copied().collect();
        assert_eq!(suggestion(name, &known), expected, "{name} among {own:?}");
    }
    assert_eq!(suggestion("cwd", &cargo_test), None, "only what the tool has");
}

/// A name that stands in its own form can be found.
#[test]
fn the_table_is_in_plain_form() {
    for (names, meant) in MEANINGS {
        for name in names.iter().chain(*meant) {
            assert_eq!(plain_name(name), *name);
        }
    }
}
