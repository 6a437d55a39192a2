use std::{io::Write, os::fd::OwnedFd, process::Command};

use super::*;
use crate::{operation::log::tests::Sample, sandbox::held};

/// A pipe with a read end as the launcher makes it, and a write end as a command gets it.
fn pipe() -> (OwnedFd, std::fs::File) {
    let (read_end, write_end) = held::pipe().unwrap();
    rustix::io::ioctl_fionbio(&read_end, true).unwrap();
    (read_end, write_end.into())
}

async fn next(pipes: &mut Pipes) -> Option<(StreamName, String)> {
    let (source, bytes) = pipes.read().await?;
    Some((source, String::from_utf8(bytes.to_vec()).unwrap()))
}

#[tokio::test]
async fn bytes_come_as_written_until_the_end() {
    let (read_end, mut write_end) = pipe();
    let mut pipes = Pipes::new(OutputPipes::Merged(read_end)).unwrap();
    write_end.write_all(b"one").unwrap();
    assert_eq!(next(&mut pipes).await, Some((StreamName::Stdout, "one".into())));
    write_end.write_all(b"two").unwrap();
    drop(write_end);
    assert_eq!(next(&mut pipes).await, Some((StreamName::Stdout, "two".into())));
    assert!(pipes.are_open());
    assert_eq!(next(&mut pipes).await, None);
    assert!(!pipes.are_open());
}

#[tokio::test]
async fn two_streams_are_told_apart_and_end_each_for_itself() {
    let (stdout, mut stdout_writer) = pipe();
    let (stderr, mut stderr_writer) = pipe();
    let mut pipes = Pipes::new(OutputPipes::Separate { stdout, stderr }).unwrap();
    stderr_writer.write_all(b"warning").unwrap();
    assert_eq!(
        next(&mut pipes).await,
        Some((StreamName::Stderr, "warning".into()))
    );
    drop(stderr_writer);
    assert_eq!(next(&mut pipes).await, None);
    stdout_writer.write_all(b"result").unwrap();
    assert_eq!(
        next(&mut pipes).await,
        Some((StreamName::Stdout, "result".into()))
    );
    drop(stdout_writer);
    assert_eq!(next(&mut pipes).await, None);
    assert!(!pipes.are_open());
}

#[tokio::test]
async fn a_loud_stream_does_not_silence_the_other() {
    let (stdout, mut loud) = pipe();
    let (stderr, mut quiet) = pipe();
    let mut pipes = Pipes::new(OutputPipes::Separate { stdout, stderr }).unwrap();
    loud.write_all(b"x").unwrap();
    quiet.write_all(b"y").unwrap();
    let mut sources = Vec::new();
    for _ in 0..2 {
        let (source, _) = pipes.read().await.unwrap();
        sources.push(source);
        loud.write_all(b"x").unwrap();
    }
    assert!(sources.contains(&StreamName::Stderr), "{sources:?}");
}

#[tokio::test]
async fn what_is_left_is_read_without_waiting_even_if_a_writer_lives() {
    let (read_end, mut write_end) = pipe();
    let mut pipes = Pipes::new(OutputPipes::Merged(read_end)).unwrap();
    write_end.write_all(b"left").unwrap();
    assert_eq!(pipes.read_now(), Some((StreamName::Stdout, b"left".as_slice())));
    assert_eq!(pipes.read_now(), None);
    drop(write_end);
}

#[tokio::test]
async fn a_terminal_that_no_process_has_open_may_be_opened_again() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let name = ptsname(&controller, Vec::new()).unwrap().into_string().unwrap();
    let open = || {
        let mut options = std::fs::File::options();
        options.read(true).write(true).open(&name).unwrap()
    };
    rustix::io::ioctl_fionbio(&controller, true).unwrap();
    let user = open();
    let mut pipes = Pipes::new(OutputPipes::Merged(controller)).unwrap();
    let echo = Command::new("echo").arg("early").stdout(user).status();
    assert!(echo.unwrap().success());
    assert_eq!(
        next(&mut pipes).await,
        Some((StreamName::Stdout, "early\r\n".into()))
    );
    assert_eq!(next(&mut pipes).await, None);
    assert!(pipes.are_open());

    let mut user = open();
    user.write_all(b"late").unwrap();
    let late = loop {
        if let Some(read) = next(&mut pipes).await {
            break read;
        }
    };
    assert_eq!(late, (StreamName::Stdout, "late".into()));
    drop(user);
    assert_eq!(pipes.read_now(), None);
    assert!(!pipes.are_open());
}

/// From a real program through a pipe into the spool file: every byte, with a constant buffer.
#[tokio::test]
async fn many_megabytes_go_through_unchanged() {
    const LINES: u64 = 2_000_000;
    let (read_end, write_end) = pipe();
    let mut child = Command::new("seq")
        .arg(LINES.to_string())
        .stdout(write_end)
        .spawn()
        .unwrap();
    let mut pipes = Pipes::new(OutputPipes::Merged(read_end)).unwrap();
    let mut sample = Sample::new(16 << 10, u64::MAX);
    while pipes.are_open() {
        if let Some((_, bytes)) = pipes.read().await {
            sample.writer.append(bytes);
        }
    }
    assert!(child.wait().unwrap().success());
    assert_eq!(pipes.buffer.capacity(), READ_BYTES);
    let spooled = sample.spooled().unwrap();
    assert_eq!(sample.log.size(), (LINES, spooled.len() as u64));
    let expected: String = (1..=LINES).map(|number| format!("{number}\n")).collect();
    assert!(spooled == expected.as_bytes());
}
