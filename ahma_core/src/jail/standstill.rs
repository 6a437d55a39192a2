//! Reasons why a command stands still, as far as the kernel tells: one of its programs waits for a lock, or is one that
//! waits for keys and has no terminal.

use std::{collections::HashSet, fs, os::unix::fs::MetadataExt as _, path::PathBuf};

use super::process::SupervisorId;

/// Programs that wait for keys for ever where others of their kind would end for want of a terminal.
const WAITING_FOR_KEYS: [&str; 8] = ["ex", "nano", "nvim", "pico", "vi", "view", "vim", "vim.basic"];

/// A reason why a command makes no progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standstill {
    /// This program waits for keys.
    Keys { program: String },
    Lock {
        /// On systems that tell.
        file: Option<PathBuf>,
        /// Process that has the lock, with its name.
        holder: Option<(i32, String)>,
    },
}

impl SupervisorId {
    /// The reason why the command below this supervisor stands still, if one is known.
    pub fn standstill(&self) -> Option<Standstill> {
        let processes = self.processes();
        let names = processes.iter().filter_map(|pid| name(*pid));
        let waits_for_keys = |name: &String| WAITING_FOR_KEYS.contains(&name.as_str());
        names
            .into_iter()
            .find(waits_for_keys)
            .map(|program| Standstill::Keys { program })
            .or_else(|| awaited_lock(&fs::read_to_string("/proc/locks").ok()?, &processes))
    }
}

fn name(pid: i32) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(name.trim_end().to_owned())
}

/// A line of `/proc/locks`.
#[derive(Debug, PartialEq, Eq)]
struct LockLine<'a> {
    /// Those who wait for a lock have the number of the one who has it.
    number: &'a str,
    waits: bool,
    pid: i32,
    /// Device and inode of the file.
    file: &'a str,
}

impl<'a> LockLine<'a> {
    /// Such as `2: -> FLOCK  ADVISORY  WRITE 4711 08:01:1234 0 EOF`.
    fn parse(line: &'a str) -> Option<Self> {
        let (number, rest) = line.split_once(':')?;
        let mut words = rest.split_whitespace().peekable();
        let waits = words.next_if_eq(&"->").is_some();
        let mut words = words.skip(3);
        let pid = words.next()?.parse().ok()?;
        let file = words.next()?;
        Some(Self {
            number,
            waits,
            pid,
            file,
        })
    }
}

fn awaited_lock(locks: &str, processes: &HashSet<i32>) -> Option<Standstill> {
    let lines: Vec<LockLine<'_>> = locks.lines().filter_map(LockLine::parse).collect();
    let waiting = lines
        .iter()
        .find(|line| line.waits && processes.contains(&line.pid))?;
    let holder = lines
        .iter()
        .find(|line| !line.waits && line.number == waiting.number)
        .filter(|line| line.pid > 0)
        .and_then(|line| Some((line.pid, name(line.pid)?)));
    Some(Standstill::Lock {
        file: opened_file(waiting),
        holder,
    })
}

/// The locked file's path: the waiting process has it open. Not every process lets others see its files.
fn opened_file(waiting: &LockLine<'_>) -> Option<PathBuf> {
    let inode: u64 = waiting.file.rsplit(':').next()?.parse().ok()?;
    let descriptors = fs::read_dir(format!("/proc/{}/fd", waiting.pid)).ok()?;
    descriptors.flatten().find_map(|entry| {
        let link = entry.path();
        let is_it = fs::metadata(&link).is_ok_and(|file| file.ino() == inode);
        let path = fs::read_link(&link).ok().filter(|_| is_it)?;
        path.is_absolute().then_some(path)
    })
}

#[cfg(test)]
#[path = "standstill_tests.rs"]
mod tests;
