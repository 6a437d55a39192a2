//! Names that tools have elsewhere, and the tools here that do the same.

use crate::mtdf::SHELL_TOOL;

/// Names in small letters without separators, and the tools that are meant, best first.
const FAMILIAR: [(&str, &[&str]); 10] = [
    (
        "bash cmd exec execcommand execute executecommand localshell powershell run runcommand runinterminal \
         runshellcommand runterminalcmd runterminalcommand sh shell shellcommand system terminal",
        &[SHELL_TOOL],
    ),
    (
        "find glob grep listdir listdirectory ls rg search searchfiles",
        &["readonly_shell", SHELL_TOOL],
    ),
    (
        "cat fileread openfile read readfile readfiles readtextfile view viewfile",
        &["file_read", SHELL_TOOL],
    ),
    (
        "edit editfile fileedit multiedit replace replaceinfile searchreplace strreplace strreplacebasededittool \
         strreplaceeditor texteditor",
        &["file_edit", SHELL_TOOL],
    ),
    (
        "create createfile filewrite savefile touch write writefile writetofile",
        &["file_write", SHELL_TOOL],
    ),
    ("applydiff applypatch diff patch", &["file_patch", SHELL_TOOL]),
    (
        "bashoutput getoutput getterminaloutput logs readoutput",
        &["output"],
    ),
    ("kill killbash killshell stop terminate", &["cancel"]),
    ("collect join sleep wait waitfor", &["await"]),
    ("jobs listoperations listprocesses ps", &["status"]),
];

/// Tools that do what a tool of that name does elsewhere.
pub(super) fn meant(name: &str) -> impl Iterator<Item = &'static str> {
    let letters: String = name
        .chars()
        .filter(|letter| !matches!(letter, '_' | '-' | '.'))
        .collect();
    let letters = letters.to_lowercase();
    FAMILIAR
        .into_iter()
        .filter(move |(names, _)| names.split(' ').any(|name| name == letters))
        .flat_map(|(_, tools)| tools.iter().copied())
}
