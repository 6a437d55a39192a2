use seccompiler::{BpfProgram, SeccompAction, TargetArch};

use super::{
    UnixSockets, command_filter,
    deny_list::denied,
    inherited_filters,
    instructions::{ALLOW, ERRNO, JUMP_ANY_BIT, JUMP_EQUAL, JUMP_GREATER_EQUAL, LOAD_WORD, RETURN},
    notification_filter,
};
use crate::sandbox::{Network, Tier};

const ARCHITECTURE_OFFSET: u32 = 4;
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

/// Runs a program as the kernel does and returns its verdict on a call.
fn run(program: &BpfProgram, call: i64, arguments: &[u64]) -> u32 {
    const JUMP: u16 = 0x05;
    const JUMP_GREATER: u16 = 0x25;
    const AND: u16 = 0x54;
    let word = |offset: u32| match offset {
        0 => call as u32,
        ARCHITECTURE_OFFSET => ARCHITECTURE,
        offset => {
            let argument = arguments
                .get((offset as usize - 16) / 8)
                .copied()
                .unwrap_or_default();
            if offset % 8 == 0 {
                argument as u32
            } else {
                (argument >> 32) as u32
            }
        }
    };
    let (mut accumulator, mut next) = (0, 0);
    loop {
        let instruction = &program[next];
        let value = instruction.k;
        next += 1;
        let holds = match instruction.code {
            LOAD_WORD => {
                accumulator = word(value);
                continue;
            }
            AND => {
                accumulator &= value;
                continue;
            }
            JUMP => {
                next += value as usize;
                continue;
            }
            RETURN => return value,
            JUMP_EQUAL => accumulator == value,
            JUMP_GREATER => accumulator > value,
            JUMP_GREATER_EQUAL => accumulator >= value,
            JUMP_ANY_BIT => accumulator & value != 0,
            code => panic!("an instruction that the test does not know: {code:#x}"),
        };
        next += usize::from(if holds { instruction.jt } else { instruction.jf });
    }
}

/// The error with which a command's call fails; of several filters the kernel takes the strictest verdict.
fn errno(filters: &[BpfProgram], call: i64, arguments: &[u64]) -> Option<i32> {
    let verdicts = filters.iter().map(|filter| run(filter, call, arguments));
    let strictest = verdicts.min().unwrap_or(ALLOW);
    match strictest & 0xffff_0000 {
        ERRNO => Some((strictest & 0xffff) as i32),
        ALLOW => None,
        other => panic!("an unexpected verdict: {other:#x}"),
    }
}

fn filters(network: Network, tier: Tier) -> Vec<BpfProgram> {
    let unix_sockets = match tier {
        Tier::Full => UnixSockets::Allowed,
        Tier::Core | Tier::Seatbelt | Tier::Off => UnixSockets::Denied,
    };
    let mut filters = inherited_filters(&network, tier, unix_sockets).unwrap();
    filters.push(command_filter());
    filters
}

#[test]
fn commands_are_denied_what_could_weaken_the_other_layers() {
    const DENIED: Option<i32> = Some(libc::EPERM);
    const ANY: u64 = 0xdead_0000_0000;
    let new_user = libc::CLONE_NEWUSER as u64;
    let fork = libc::SIGCHLD as u64;
    for (call, arguments, full, core) in [
        (libc::SYS_read, &[] as &[u64], None, None),
        (libc::SYS_ptrace, &[], DENIED, DENIED),
        (libc::SYS_mount, &[], DENIED, DENIED),
        (libc::SYS_pidfd_getfd, &[], DENIED, DENIED),
        (libc::SYS_clone, &[fork], None, None),
        (libc::SYS_clone, &[fork | new_user], DENIED, DENIED),
        (libc::SYS_clone3, &[], Some(libc::ENOSYS), Some(libc::ENOSYS)),
        (libc::SYS_fchmod, &[3, 0o755], None, None),
        (libc::SYS_fchmod, &[3, 0o4755], DENIED, DENIED),
        (libc::SYS_fchmodat, &[3, ANY, ANY | 0o4755], DENIED, DENIED),
        (libc::SYS_mknodat, &[3, 0, 0o10_644], None, None),
        (libc::SYS_mknodat, &[3, 0, 0o20_644], DENIED, DENIED),
        (libc::SYS_fcntl, &[3, libc::F_GETFD as u64], None, None),
        (libc::SYS_fcntl, &[3, 1024], DENIED, DENIED),
        (libc::SYS_ioctl, &[3, libc::TCGETS], None, None),
        (libc::SYS_ioctl, &[3, ANY | libc::TIOCSTI], DENIED, DENIED),
        (libc::SYS_ioctl, &[3, 0x4004_9409], None, None),
        (libc::SYS_ioctl, &[3, 0x5000_940e], DENIED, DENIED),
        (libc::SYS_ioctl, &[3, 0x4008_6602], None, DENIED),
        (libc::SYS_shmget, &[], None, DENIED),
        (libc::SYS_prlimit64, &[0], None, None),
        (libc::SYS_prlimit64, &[7], None, DENIED),
        (libc::SYS_setpriority, &[0, 0], None, None),
        (libc::SYS_setpriority, &[0, 7], None, DENIED),
        (libc::SYS_setpriority, &[libc::PRIO_USER as u64, 0], None, DENIED),
        (libc::SYS_setxattr, &[], None, Some(libc::ENOTSUP)),
        #[cfg(target_arch = "x86_64")]
        (
            libc::SYS_ptrace | 0x4000_0000,
            &[],
            Some(libc::ENOSYS),
            Some(libc::ENOSYS),
        ),
    ] {
        for (tier, expected) in [(Tier::Full, full), (Tier::Core, core)] {
            let found = errno(&filters(Network::Open, tier), call, arguments);
            assert_eq!(found, expected, "{tier:?}: call {call}, {arguments:x?}");
        }
    }
}

#[test]
fn sockets_are_those_of_the_network_mode() {
    let [unix, inet, inet6, netlink, vsock] = [
        libc::AF_UNIX,
        libc::AF_INET,
        libc::AF_INET6,
        libc::AF_NETLINK,
        libc::AF_VSOCK,
    ]
    .map(|family| family as u64);
    let [stream, datagram] = [libc::SOCK_STREAM, libc::SOCK_DGRAM].map(|kind| kind as u64);
    let (tcp, mptcp) = (libc::IPPROTO_TCP as u64, 262);
    let audit = libc::NETLINK_AUDIT as u64;
    let cloexec = libc::SOCK_CLOEXEC as u64;
    // Allowed in the modes open, off and ports, in the full tier; unix sockets in the core tier never.
    for (arguments, open, off, ports) in [
        ([unix, stream, 0], true, true, true),
        ([inet, stream | cloexec, 0], true, false, true),
        ([inet6, stream, tcp], true, false, true),
        ([inet, stream, mptcp], true, false, false),
        ([inet, datagram, 0], true, false, false),
        ([netlink, datagram, 0], true, false, false),
        ([netlink, datagram, audit], false, false, false),
        ([vsock, stream, 0], false, false, false),
    ] {
        for (network, allowed) in [
            (Network::Open, open),
            (Network::Off, off),
            (Network::Ports(vec![443]), ports),
        ] {
            for tier in [Tier::Full, Tier::Core] {
                let expected = allowed && (tier == Tier::Full || arguments[0] != unix);
                let found = errno(&filters(network.clone(), tier), libc::SYS_socket, &arguments);
                assert_eq!(found.is_none(), expected, "{network:?}, {tier:?}: {arguments:?}");
            }
        }
    }
    for (arguments, full, core) in [
        ([unix, stream], true, true),
        ([unix, datagram | cloexec], true, false),
        ([inet, stream], false, false),
    ] {
        for (tier, expected) in [(Tier::Full, full), (Tier::Core, core)] {
            let found = errno(&filters(Network::Open, tier), libc::SYS_socketpair, &arguments);
            assert_eq!(found.is_none(), expected, "{tier:?}: {arguments:?}");
        }
    }
    let fast_open = [3, 0, 0, libc::MSG_FASTOPEN as u64];
    let listed = filters(Network::Ports(vec![443]), Tier::Full);
    assert!(errno(&listed, libc::SYS_sendto, &fast_open).is_some());
    assert!(errno(&listed, libc::SYS_sendto, &[3]).is_none());
    assert!(errno(&listed, libc::SYS_listen, &[3]).is_some());
}

const NOTIFIED: [i64; 2] = [libc::SYS_fchmod, libc::SYS_inotify_add_watch];

#[test]
fn the_notified_calls_and_no_others_notify() {
    const USER_NOTIFICATION: u32 = 0x7fc0_0000;
    let filter = notification_filter(&NOTIFIED).unwrap();
    for call in 0..500 {
        let expected = if NOTIFIED.contains(&call) {
            USER_NOTIFICATION
        } else {
            ALLOW
        };
        assert_eq!(run(&filter, call, &[]), expected, "call {call}");
    }
}

#[test]
fn filters_are_built_for_both_architectures_and_look_at_theirs_first() {
    // Numbers of another architecture mean other calls, so they end the process.
    let refuses_others = |program: &BpfProgram| {
        program
            .first()
            .is_some_and(|first| first.code == LOAD_WORD && first.k == ARCHITECTURE_OFFSET)
    };
    let networks = [
        Network::Open,
        Network::Loopback,
        Network::Off,
        Network::Ports(vec![443]),
    ];
    for arch in [TargetArch::x86_64, TargetArch::aarch64] {
        for network in &networks {
            for tier in [Tier::Full, Tier::Core] {
                for unix_sockets in [UnixSockets::Allowed, UnixSockets::Denied] {
                    for (calls, errno) in denied(network, tier, unix_sockets) {
                        let program = calls.compile(arch, SeccompAction::Errno(errno as u32)).unwrap();
                        assert!(refuses_others(&program), "{arch:?}");
                    }
                }
            }
        }
    }
    assert!(refuses_others(&notification_filter(&NOTIFIED).unwrap()));
}
