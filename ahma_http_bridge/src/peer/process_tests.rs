use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};

use super::{Link, Process, Socket};

/// A process that says its own number or another's, and then waits for the end of its input.
fn speaking(program: &str, arguments: &[&str]) -> (Child, u32) {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    (child, line.trim().parse().unwrap())
}

fn end(mut child: Child) {
    drop(child.stdin.take());
    child.wait().unwrap();
}

#[test]
fn who_holds_a_socket_is_found_and_others_are_not() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let inode = rustix::fs::fstat(listener.as_fd()).unwrap().st_ino;
    let link = Link::of(Socket {
        inode: u32::try_from(inode).unwrap(),
        uid: 0,
    });
    let ourselves = Process::open(std::process::id()).unwrap();
    let descriptor = ourselves.descriptor_of(&link).unwrap();
    assert!(ourselves.holds_as(descriptor, &link));
    let (other, pid) = speaking("sh", &["-c", "echo $$; read end"]);
    assert_eq!(Process::open(pid).unwrap().descriptor_of(&link), None);
    end(other);
}

#[test]
fn everything_below_the_bridge_is_a_command_and_nothing_beside_it() {
    let ourselves = std::process::id();
    // The one in the middle stays, the other is its child.
    let (middle, below) = speaking(
        "sh",
        &["-c", "exec 3<&0; sh -c 'echo $$; read end <&3; :' & wait"],
    );
    let is_command = |pid: u32, bridge: u32| Process::open(pid).unwrap().is_command(bridge).unwrap();
    assert!(is_command(below, ourselves));
    assert!(is_command(below, middle.id()));
    assert!(!is_command(ourselves, ourselves));
    assert!(!is_command(ourselves, below));
    assert!(!is_command(1, ourselves));
    end(middle);
}

#[test]
fn below_a_warden_is_a_command_of_some_server() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("__jail");
    std::fs::write(&script, "exec 3<&0; sh -c 'echo $$; read end <&3; :' & wait").unwrap();
    let run = format!("cd {}; exec sh __jail", directory.path().display());
    let (jail, below) = speaking("sh", &["-c", &run]);
    let (beside, _) = speaking("sh", &["-c", "echo $$; read end"]);
    let command = Process::open(below).unwrap();
    assert!(command.is_command(beside.id()).unwrap());
    // For one that runs below the same jail it is nothing special, nor for the jail's parents.
    assert!(!Process::open(beside.id()).unwrap().is_command(below).unwrap());
    assert!(
        !Process::open(std::process::id())
            .unwrap()
            .is_command(below)
            .unwrap()
    );
    end(beside);
    end(jail);
}

#[test]
fn a_process_that_ended_is_not_mistaken_for_one_with_its_number() {
    let (child, pid) = speaking("sh", &["-c", "echo $$; read end"]);
    let process = Process::open(pid).unwrap();
    end(child);
    assert!(process.is_command(std::process::id()).is_err());
}
