//! Patches as models write them: unified diffs with unreliable line numbers, and the `*** Begin Patch` form.
//!
//! Parsing only. Line numbers of a unified diff are hints, its counts are ignored; `patch_apply` finds the places.

/// Change that a patch makes to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FilePatch {
    pub(super) path: String,
    pub(super) action: PatchAction,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PatchAction {
    Add {
        content: String,
        executable: bool,
    },
    Delete,
    Update {
        hunks: Vec<Hunk>,
        move_to: Option<String>,
        /// Set where the patch changes the executable bit.
        executable: Option<bool>,
    },
}

/// Consecutive lines of a file, with what replaces them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Hunk {
    /// Line at which a unified diff says the hunk starts, counted from 1.
    pub(super) line: Option<usize>,
    /// A line of the file above the hunk, from the text after `@@`.
    pub(super) anchor: Option<String>,
    pub(super) lines: Vec<HunkLine>,
    /// The hunk ends at the end of the file.
    pub(super) at_end: bool,
    /// The new text ends without a newline.
    pub(super) no_final_newline: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HunkLine {
    Context(String),
    Remove(String),
    Add(String),
}

/// A patch that cannot be understood.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the patch: {reason}")]
pub(super) struct PatchSyntaxError {
    line: usize,
    reason: &'static str,
}

/// Reads a patch in either form.
pub(super) fn parse(text: &str) -> Result<Vec<FilePatch>, PatchSyntaxError> {
    let lines: Vec<&str> = text.lines().collect();
    let reader = Reader { lines, at: 0 };
    let begin = reader
        .lines
        .iter()
        .position(|line| line.trim() == "*** Begin Patch");
    let files = match begin {
        Some(begin) => Reader {
            at: begin + 1,
            ..reader
        }
        .marked()?,
        None => reader.unified()?,
    };
    if files.is_empty() {
        return Err(PatchSyntaxError {
            line: 1,
            reason: "neither a unified diff (`--- a/file`, `+++ b/file`, `@@`) nor a `*** Begin Patch` block",
        });
    }
    Ok(files)
}

#[derive(Debug)]
struct Reader<'p> {
    lines: Vec<&'p str>,
    at: usize,
}

impl<'p> Reader<'p> {
    fn peek(&self) -> Option<&'p str> {
        self.lines.get(self.at).copied()
    }

    fn error<T>(&self, reason: &'static str) -> Result<T, PatchSyntaxError> {
        Err(PatchSyntaxError {
            line: self.at + 1,
            reason,
        })
    }

    /// The `*** Begin Patch` form.
    fn marked(mut self) -> Result<Vec<FilePatch>, PatchSyntaxError> {
        let mut files = Vec::new();
        while let Some(line) = self.peek() {
            let line = line.trim_end();
            if line == "*** End Patch" {
                return Ok(files);
            } else if let Some(path) = line.strip_prefix("*** Add File: ") {
                self.at += 1;
                files.push(self.added(path)?);
            } else if let Some(path) = line.strip_prefix("*** Delete File: ") {
                self.at += 1;
                files.push(FilePatch {
                    path: path.into(),
                    action: PatchAction::Delete,
                });
            } else if let Some(path) = line.strip_prefix("*** Update File: ") {
                self.at += 1;
                files.push(self.updated(path)?);
            } else if line.is_empty() {
                self.at += 1;
            } else {
                return self.error(
                    "expected `*** Add File:`, `*** Update File:`, `*** Delete File:` or `*** End Patch`",
                );
            }
        }
        Ok(files)
    }

    fn added(&mut self, path: &str) -> Result<FilePatch, PatchSyntaxError> {
        let mut content = String::new();
        while let Some(line) = self.peek().filter(|line| !line.starts_with("*** ")) {
            match line.strip_prefix('+') {
                Some(text) => {
                    content.push_str(text);
                    content.push('\n');
                }
                None if line.is_empty() => {}
                None => return self.error("a line of a new file starts with `+`"),
            }
            self.at += 1;
        }
        Ok(FilePatch {
            path: path.into(),
            action: PatchAction::Add {
                content,
                executable: false,
            },
        })
    }

    fn updated(&mut self, path: &str) -> Result<FilePatch, PatchSyntaxError> {
        let mut move_to = None;
        if let Some(target) = self.peek().and_then(|line| line.strip_prefix("*** Move to: ")) {
            move_to = Some(target.trim_end().to_owned());
            self.at += 1;
        }
        let mut hunks: Vec<Hunk> = Vec::new();
        while let Some(line) = self.peek() {
            if line.trim_end() == "*** End of File" {
                if let Some(hunk) = hunks.last_mut() {
                    hunk.at_end = true;
                }
                self.at += 1;
            } else if line.starts_with("*** ") {
                break;
            } else if let Some(anchor) = line.strip_prefix("@@") {
                self.at += 1;
                let anchor = anchor.trim_end_matches("@@").trim();
                hunks.push(Hunk {
                    anchor: (!anchor.is_empty()).then(|| anchor.to_owned()),
                    ..self.body(|_, line| line.starts_with("@@") || line.starts_with("*** "))?
                });
            } else {
                // The first hunk may come without `@@`.
                hunks.push(self.body(|_, line| line.starts_with("@@") || line.starts_with("*** "))?);
            }
        }
        if hunks.is_empty() && move_to.is_none() {
            return self.error("an updated file needs at least one hunk");
        }
        Ok(FilePatch {
            path: path.into(),
            action: PatchAction::Update {
                hunks,
                move_to,
                executable: None,
            },
        })
    }

    /// A unified diff, from git or not.
    fn unified(mut self) -> Result<Vec<FilePatch>, PatchSyntaxError> {
        let mut files = Vec::new();
        let mut head = GitHead::default();
        while let Some(line) = self.peek() {
            if let Some(paths) = line.strip_prefix("diff --git ") {
                files.extend(std::mem::take(&mut head).without_hunks());
                head.path = Some(same_path(paths).unwrap_or_default().to_owned());
            } else if line.starts_with("GIT binary patch") || line.starts_with("Binary files ") {
                return self.error("binary patches are not supported");
            } else if let Some(mode) = line
                .strip_prefix("new file mode ")
                .or_else(|| line.strip_prefix("new mode "))
            {
                head.executable = Some(mode.trim() == "100755");
            } else if let Some(path) = line.strip_prefix("rename from ") {
                head.rename_from = Some(path.to_owned());
            } else if let Some(path) = line.strip_prefix("rename to ") {
                head.rename_to = Some(path.to_owned());
            } else if self.starts_file() {
                files.push(self.unified_file(std::mem::take(&mut head))?);
                continue;
            } else if line.starts_with("@@") {
                return self.error("a hunk without `--- a/file` and `+++ b/file` above it");
            }
            self.at += 1;
        }
        files.extend(head.without_hunks());
        Ok(files)
    }

    fn starts_file(&self) -> bool {
        matches!(&self.lines[self.at..], [old, new, ..] if old.starts_with("--- ") && new.starts_with("+++ "))
    }

    fn unified_file(&mut self, head: GitHead) -> Result<FilePatch, PatchSyntaxError> {
        let path_in = |index: usize| header_path(&self.lines[index][4..]);
        let (old, new) = (path_in(self.at), path_in(self.at + 1));
        self.at += 2;
        let strip = head.path.is_some() || (is_prefixed(old, "a/") && is_prefixed(new, "b/"));
        let name = |path: &str, prefix| match path.strip_prefix(prefix) {
            Some(rest) if strip => rest.to_owned(),
            _ => path.to_owned(),
        };
        let mut hunks = Vec::new();
        while let Some(line) = self.peek().filter(|line| line.starts_with("@@")) {
            self.at += 1;
            let hunk = self.body(|reader, line| {
                line.starts_with("@@") || line.starts_with("diff --git ") || reader.starts_file()
            })?;
            hunks.push(Hunk {
                line: hinted_line(line),
                ..hunk
            });
        }
        let (path, action) = match (old, new) {
            ("/dev/null", new) => {
                let content = new_text(&hunks);
                let executable = head.executable.unwrap_or(false);
                (name(new, "b/"), PatchAction::Add { content, executable })
            }
            (old, "/dev/null") => (name(old, "a/"), PatchAction::Delete),
            (old, new) => {
                let (old, new) = (name(old, "a/"), name(new, "b/"));
                let update = PatchAction::Update {
                    hunks,
                    move_to: (new != old).then_some(new),
                    executable: head.executable,
                };
                (old, update)
            }
        };
        Ok(FilePatch { path, action })
    }

    /// The lines of one hunk, up to where `ends` says or the patch ends.
    fn body(&mut self, ends: impl Fn(&Self, &str) -> bool) -> Result<Hunk, PatchSyntaxError> {
        let mut hunk = Hunk::default();
        let mut trailing_blanks = 0;
        while let Some(line) = self.peek() {
            if ends(self, line) {
                break;
            }
            let (kind, rest) = line.split_at_checked(1).unwrap_or((" ", ""));
            match kind {
                " " => hunk.lines.push(HunkLine::Context(rest.into())),
                "-" => hunk.lines.push(HunkLine::Remove(rest.into())),
                "+" => hunk.lines.push(HunkLine::Add(rest.into())),
                "\\" => hunk.no_final_newline = !matches!(hunk.lines.last(), Some(HunkLine::Remove(_))),
                _ => return self.error("a line of a hunk starts with a space, `+` or `-`"),
            }
            trailing_blanks = if line.is_empty() { trailing_blanks + 1 } else { 0 };
            self.at += 1;
        }
        // Blank lines between this hunk and what follows belong to neither.
        hunk.lines.truncate(hunk.lines.len() - trailing_blanks);
        if hunk.lines.is_empty() {
            return self.error("a hunk without lines");
        }
        Ok(hunk)
    }
}

/// Lines that git writes above the `---` line.
#[derive(Debug, Default)]
struct GitHead {
    /// Empty if the two paths of the `diff --git` line differ; absent without that line.
    path: Option<String>,
    executable: Option<bool>,
    rename_from: Option<String>,
    rename_to: Option<String>,
}

impl GitHead {
    /// The change of a file whose text stays: renamed, or another mode.
    fn without_hunks(self) -> Option<FilePatch> {
        let (path, move_to) = match (self.rename_from, self.rename_to) {
            (Some(from), Some(to)) => (from, Some(to)),
            _ => (self.path.filter(|_| self.executable.is_some())?, None),
        };
        Some(FilePatch {
            path,
            action: PatchAction::Update {
                hunks: Vec::new(),
                move_to,
                executable: self.executable,
            },
        })
    }
}

/// `P` of `a/P b/P`.
fn same_path(paths: &str) -> Option<&str> {
    let (old, new) = paths.split_at_checked(paths.len() / 2)?;
    let (old, new) = (old.strip_prefix("a/")?, new.strip_prefix(" b/")?);
    (old == new).then_some(old)
}

/// A path without the time that `diff` writes after it.
fn header_path(text: &str) -> &str {
    text.split('\t').next().unwrap_or(text).trim_end()
}

fn is_prefixed(path: &str, prefix: &str) -> bool {
    path == "/dev/null" || path.starts_with(prefix)
}

/// The first old line of `@@ -12,3 +14,5 @@`.
fn hinted_line(header: &str) -> Option<usize> {
    let digits = header.split_once('-')?.1;
    let end = digits
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(digits.len());
    digits[..end].parse().ok()
}

fn new_text(hunks: &[Hunk]) -> String {
    let mut text = String::new();
    for line in hunks.iter().flat_map(|hunk| &hunk.lines) {
        if let HunkLine::Add(line) | HunkLine::Context(line) = line {
            text.push_str(line);
            text.push('\n');
        }
    }
    if hunks.last().is_some_and(|hunk| hunk.no_final_newline) {
        text.pop();
    }
    text
}

#[cfg(test)]
#[path = "patch_tests.rs"]
mod tests;
