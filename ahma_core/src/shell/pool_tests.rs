use std::{
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use super::{Pool, PoolSettings, Warm};
use crate::jail::wire;

/// A shell whose owner lives as long as the second value.
fn shell() -> (Warm, OwnedFd) {
    let (control, owner) = wire::pair().unwrap();
    rustix::io::ioctl_fionbio(&control, true).unwrap();
    let pipe = || rustix::pipe::pipe().unwrap().0;
    (
        Warm {
            control,
            begun: false,
            script: pipe(),
            output: pipe(),
        },
        owner,
    )
}

#[test]
fn grows_under_a_burst_and_shrinks_when_idle() {
    let start = Instant::now();
    let idle = Duration::from_secs(30);
    let mut pool = Pool::new(
        PoolSettings {
            floor: 2,
            cap: 8,
            idle,
        },
        start,
    );
    let mut owners = Vec::new();
    let mut fill = |pool: &mut Pool| {
        for _ in 0..pool.missing() {
            let (shell, owner) = shell();
            owners.push(owner);
            pool.add(shell);
        }
    };
    assert_eq!(pool.missing(), 2);
    fill(&mut pool);
    assert!(pool.take(start).is_some() && pool.take(start).is_some());
    assert!(pool.take(start).is_none(), "an empty pool is slow, not an error");
    assert_eq!(pool.missing(), 4, "and it grows");
    assert!(pool.take(start).is_none() && pool.take(start).is_none());
    assert_eq!(pool.missing(), 8, "up to the cap");
    fill(&mut pool);
    pool.tend(start + idle);
    assert_eq!(pool.missing(), 0);
    pool.tend(start + 2 * idle);
    pool.tend(start + 3 * idle);
    for _ in 0..2 {
        assert!(pool.take(start + 3 * idle).is_some(), "the floor stays");
    }
    assert!(pool.take(start + 3 * idle).is_none());
}

#[test]
fn dead_shells_are_thrown_away() {
    let now = Instant::now();
    let mut pool = Pool::new(
        PoolSettings {
            floor: 2,
            cap: 2,
            idle: Duration::from_secs(1),
        },
        now,
    );
    let (dead, owner) = shell();
    // Not just closed: a process that another test just forks may hold it, too.
    rustix::net::shutdown(&owner, rustix::net::Shutdown::Both).unwrap();
    let (reported, owner_that_spoke) = shell();
    let gone = wire::Report::Gone { exited: None };
    wire::send(&owner_that_spoke, &gone, &[]).unwrap();
    let (alive, _owner) = shell();
    for shell in [dead, reported, alive] {
        pool.add(shell);
    }
    assert!(pool.take(now).is_some());
    assert!(pool.take(now).is_none());
}

#[test]
fn a_shell_whose_owner_has_spoken_once_waits() {
    let now = Instant::now();
    let mut pool = Pool::new(PoolSettings::default(), now);
    let (warm, owner) = shell();
    pool.add(warm);
    wire::send(&owner, &wire::Report::Begun, &[]).unwrap();
    pool.tend(now);
    assert!(pool.take(now).is_some_and(|warm| warm.begun));
}

#[test]
fn a_closed_pool_keeps_nothing_that_comes_late() {
    let now = Instant::now();
    let mut pool = Pool::new(PoolSettings::default(), now);
    pool.clear();
    let (late, _owner) = shell();
    assert!(pool.take(now).is_none());
    pool.add(late);
    assert!(pool.take(now).is_none());
}
