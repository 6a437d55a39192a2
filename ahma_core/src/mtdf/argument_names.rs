//! Names of arguments: spellings that count as the same, and the argument meant by a name that a tool does not have.

use ahma_common::nearest;

/// Names that agents use, taken from the tools they know best, and the arguments that may be meant, best first. All in
/// the form of [`plain_name`].
#[rustfmt::skip]
const MEANINGS: &[(&[&str], &[&str])] = &[
    (&["cwd", "dir", "directory", "workdir", "work_dir", "working_dir", "current_directory", "folder", "root"], &["working_directory", "path", "paths", "directory"]),
    (&["timeout", "timeout_ms", "timeout_s", "timeout_sec", "timeout_secs", "time_limit", "max_time"], &["timeout_seconds", "timeout"]),
    (&["background", "run_in_background", "is_background", "async", "asynchronous", "sync", "synchronous", "wait", "blocking"], &["execution_mode"]),
    (&["query", "regex", "regexp", "search", "needle", "expression", "term"], &["pattern", "query", "grep", "regexp", "filter", "filterset", "keyword"]),
    (&["pattern"], &["query", "grep", "regexp", "filter", "keyword"]),
    (&["filter", "test_name", "test_filter", "testname", "test_case", "name_filter", "k"], &["filter", "filters", "keyword", "filterset", "tests", "run", "name", "pattern", "grep"]),
    (&["msg", "m", "commit_message", "comment"], &["message", "description", "reason"]),
    (&["limit", "n", "count", "max", "max_results", "num", "number", "head", "top"], &["max_count", "limit", "max_lines", "max_findings", "count", "number", "tail", "depth"]),
    (&["lines", "num_lines", "line_count", "length"], &["max_lines", "tail", "max_count"]),
    (&["offset", "start", "start_line", "line", "line_number", "line_start", "begin", "skip"], &["from_line", "offset", "start"]),
    (&["file", "files", "filename", "file_name", "filepath", "file_path", "filenames", "path", "paths", "pathspec", "target_file", "absolute_path", "location"], &["path", "paths", "file", "files", "file_path", "filename", "targets", "target", "tests", "manifest_path"]),
    (&["contents", "text", "data", "body", "file_text", "content"], &["content", "text", "message", "body", "stdin"]),
    (&["old_string", "old_str", "old_text", "find"], &["old", "edits"]),
    (&["new_string", "new_str", "new_text", "replace", "replacement"], &["new", "edits"]),
    (&["replace_all"], &["all", "edits"]),
    (&["diff", "unified_diff", "input"], &["patch", "stdin", "input"]),
    (&["cmd", "script", "code", "shell", "bash", "commands", "command_line"], &["command", "script", "code"]),
    (&["environment", "env_vars", "envs", "environment_variables"], &["env"]),
    (&["v"], &["verbose", "version"]),
    (&["q", "silent"], &["quiet"]),
    (&["f"], &["force", "file"]),
    (&["r"], &["recursive", "release"]),
    (&["a"], &["all"]),
    (&["i"], &["ignore_case"]),
    (&["p", "pkg", "crate", "crate_name", "package_name", "project"], &["package", "packages", "crate", "crates"]),
    (&["package", "packages", "crates", "dependency", "dependencies"], &["package", "packages", "crate", "crates"]),
    (&["ref", "rev", "sha", "hash", "commit", "branch", "revision"], &["revision", "revisions", "commit", "commits", "objects", "branch", "target", "name"]),
    (&["branch_name", "new_branch"], &["branch", "name", "new_branch", "create"]),
    (&["id", "op", "op_id", "operation", "task_id", "job_id", "bash_id", "shell_id", "pid"], &["operation_id", "operation_ids", "id"]),
    (&["arguments", "extra_args", "argv", "params", "parameters", "options", "flags"], &["args"]),
];

/// The form in which spellings of one name are the same: `all_features` for `all-features`, `--all-features` and
/// `allFeatures`.
pub(crate) fn plain_name(name: &str) -> String {
    let mut plain = String::with_capacity(name.len() + 4);
    let mut after_small = false;
    for letter in name.trim_start_matches('-').chars() {
        if after_small && letter.is_ascii_uppercase() {
            plain.push('_');
            plain.push(letter.to_ascii_lowercase());
        } else {
            plain.push(if letter == '-' { '_' } else { letter });
        }
        after_small = letter.is_ascii_lowercase() || letter.is_ascii_digit();
    }
    plain
}

/// The one of `known` that was probably meant by a name that is none of them. What agents mean by a name counts more than
/// its letters: `test_name` is a filter, however much it looks like `test`.
pub(crate) fn suggestion<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let wanted = plain_name(name);
    let mut meanings = MEANINGS
        .iter()
        .filter(|(names, _)| names.contains(&wanted.as_str()))
        .peekable();
    if meanings.peek().is_none() {
        return nearest(name, known.iter().copied()).first().copied();
    }
    meanings
        .flat_map(|(_, meant)| *meant)
        .find_map(|meant| known.iter().copied().find(|known| plain_name(known) == *meant))
}

#[cfg(test)]
#[path = "argument_names_tests.rs"]
mod tests;
