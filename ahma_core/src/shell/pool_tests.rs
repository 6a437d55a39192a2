use std::{
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use super::{PAUSE, Pool, PoolSettings, Pools, QUIET};
use crate::{
    jail::wire::{self, ProcessKind},
    shell::idle_process::{IdleProcess, OutputPipes},
};

/// An idle shell whose supervisor lives as long as the second value.
fn shell() -> (IdleProcess, OwnedFd) {
    let (control, supervisor) = wire::pair().unwrap();
    rustix::io::ioctl_fionbio(&control, true).unwrap();
    let pipe = || rustix::pipe::pipe().unwrap().0;
    let output = OutputPipes::Merged(pipe());
    let shell = IdleProcess::new(control, pipe(), Some(output)).unwrap();
    (shell, supervisor)
}

#[tokio::test]
async fn grows_under_a_burst_and_shrinks_when_idle() {
    let start = Instant::now();
    let idle = Duration::from_secs(30);
    let mut pool = Pool::new(
        PoolSettings {
            floor: 2,
            busy: 2,
            cap: 8,
            idle,
        },
        start,
    );
    let mut supervisors = Vec::new();
    let mut fill = |pool: &mut Pool| {
        for _ in 0..pool.missing() {
            let (shell, supervisor) = shell();
            supervisors.push(supervisor);
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

#[tokio::test]
async fn a_pool_on_demand_is_empty_before_the_first_call_and_long_after_the_last() {
    let start = Instant::now();
    let settings = PoolSettings {
        cap: 8,
        ..PoolSettings::on_demand()
    };
    let mut pool = Pool::new(settings, start);
    assert_eq!(pool.missing(), 0);
    assert!(pool.take(start).is_none());
    assert_eq!(pool.missing(), 1, "one call is no burst");
    let (first, _supervisor) = shell();
    pool.add(first);
    pool.tend(start + settings.idle);
    assert_eq!(pool.missing(), 0);
    assert!(pool.idle.is_empty());
}

#[test]
fn calls_in_quick_succession_are_no_pause() {
    let start = Instant::now();
    let mut pools = Pools::new(PoolSettings::default(), start);
    assert!(pools.client_pauses());
    pools.take(ProcessKind::Shell, start + 2 * PAUSE);
    assert!(pools.client_pauses());
    pools.take(ProcessKind::Program, start + 2 * PAUSE + PAUSE / 2);
    assert!(!pools.client_pauses(), "whatever they need");
    pools.take(ProcessKind::Shell, start + 4 * PAUSE);
    assert!(pools.client_pauses());
}

#[test]
fn pools_fall_quiet_once_after_each_call() {
    let start = Instant::now();
    let mut pools = Pools::new(PoolSettings::default(), start);
    assert!(!pools.fell_quiet(start + QUIET / 2));
    assert!(pools.fell_quiet(start + QUIET));
    assert!(!pools.fell_quiet(start + 2 * QUIET), "that has been told");
    pools.take(ProcessKind::Shell, start + 2 * QUIET);
    assert!(!pools.fell_quiet(start + 2 * QUIET));
    assert!(pools.fell_quiet(start + 3 * QUIET));
}

#[tokio::test]
async fn dead_shells_are_dropped() {
    let now = Instant::now();
    let mut pool = Pool::new(
        PoolSettings {
            floor: 2,
            busy: 2,
            cap: 2,
            idle: Duration::from_secs(1),
        },
        now,
    );
    let (dead, supervisor) = shell();
    // Not just closed: a process that another test just forks may hold it, too.
    rustix::net::shutdown(&supervisor, rustix::net::Shutdown::Both).unwrap();
    let (reported, supervisor_that_reported) = shell();
    let gone = wire::Report::Gone { exited: None };
    wire::send(&supervisor_that_reported, &gone, &[]).unwrap();
    let (alive, _supervisor) = shell();
    for shell in [dead, reported, alive] {
        pool.add(shell);
    }
    assert!(pool.take(now).is_some());
    assert!(pool.take(now).is_none());
}

#[tokio::test]
async fn a_shell_whose_supervisor_has_reported_it_idle_is_kept() {
    let now = Instant::now();
    let mut pool = Pool::new(PoolSettings::default(), now);
    let (idle, supervisor) = shell();
    pool.add(idle);
    wire::send(&supervisor, &wire::Report::Idle, &[]).unwrap();
    pool.tend(now);
    let mut idle = pool.take(now).expect("it is alive");
    idle.wait_until_ready().await.expect("it was reported before");
}

#[tokio::test]
async fn a_closed_pool_keeps_nothing_that_comes_late() {
    let now = Instant::now();
    let mut pool = Pool::new(PoolSettings::default(), now);
    pool.close();
    let (late, _supervisor) = shell();
    assert!(pool.take(now).is_none());
    pool.add(late);
    assert!(pool.take(now).is_none());
}
