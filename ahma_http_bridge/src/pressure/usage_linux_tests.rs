use std::io::Read as _;
use std::process::{Child, Command, Stdio};

use super::*;

#[test]
fn everything_below_counts() {
    // The second process is a grandchild; both say that they are there.
    let mut child = Command::new("sh")
        .args(["-c", "sh -c 'echo $$; read end'; :"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut stdout = child.stdout.take().unwrap();
    while !said.ends_with('\n') {
        let mut byte = [0];
        stdout.read_exact(&mut byte).unwrap();
        said.push(char::from(byte[0]));
    }
    let grandchild: u32 = said.trim().parse().unwrap();
    let tree = process_tree();
    assert!(tree.contains(&std::process::id()) && tree.contains(&child.id()) && tree.contains(&grandchild));
    assert!(memory_bytes(&[child.id(), grandchild]) > memory_bytes(&[child.id()]));
    drop(child.stdin.take());
    child.wait().unwrap();
}

#[test]
fn memory_that_is_shared_is_counted_once() {
    let spawn = || {
        Command::new("sh")
            .args(["-c", "echo; read end"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let mut shells: Vec<_> = (0..4).map(|_| spawn()).collect();
    for shell in &mut shells {
        shell.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    }
    let ids: Vec<u32> = shells.iter().map(Child::id).collect();
    let resident = |pid: &u32| field_bytes(*pid, "status", "VmRSS:").unwrap();
    let proportional = memory_bytes(&ids);
    let whole: u64 = ids.iter().map(resident).sum();
    assert!(
        0 < proportional && proportional < whole,
        "{proportional} of {whole}"
    );
    for mut shell in shells {
        drop(shell.stdin.take());
        shell.wait().unwrap();
    }
}

#[test]
fn the_time_of_this_process_is_found() {
    let mut work: u64 = 1;
    while cpu_ms(std::process::id()) == 0 {
        work = std::hint::black_box(work.wrapping_mul(31));
    }
}
