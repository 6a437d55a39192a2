//! The seccomp layer: system calls that no command needs and that would weaken the other layers.
//!
//! A deny-list that answers `EPERM`, so that programs which merely try go on. Installing a program costs about 0.7 µs per
//! instruction, because the kernel runs it for every call number there is. So the jail puts on itself, once, all that it
//! can live with, inherited by everything it starts; what is left for each command are eight instructions.

use std::{
    collections::BTreeMap,
    env::consts::ARCH,
    io,
    os::fd::{FromRawFd, OwnedFd},
};

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use crate::sandbox::{Network, Tier};

type Denied = BTreeMap<i64, Vec<SeccompRule>>;

/// What the jail puts on itself when its view stands. The second program answers `ENOSYS` to `clone3`: its flags lie in
/// memory, where a filter cannot look, and libraries then use `clone`.
pub(crate) fn inherited(
    network: &Network,
    tier: Tier,
    unix_sockets: UnixSockets,
) -> io::Result<Vec<BpfProgram>> {
    let denied = never_needed(network, tier, unix_sockets)?;
    let mut clone3 = Denied::new();
    clone3.insert(libc::SYS_clone3, Vec::new());
    let mut programs = vec![compile(denied, libc::EPERM)?, compile(clone3, libc::ENOSYS)?];
    if tier == Tier::Core {
        programs.push(compile(attributes(), libc::ENOTSUP)?);
    }
    programs.extend(x32_guard());
    Ok(programs)
}

/// What a command may not do but the jail or an owner must: mount an operation's `/proc`, take a descriptor from those
/// who ask, make namespaces. Other architectures and the x32 bit are refused by what is inherited.
pub(crate) fn for_commands() -> BpfProgram {
    const NAMESPACES: i32 = libc::CLONE_NEWNS
        | libc::CLONE_NEWCGROUP
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUSER
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET;
    vec![
        step(LOAD_WORD, 0, 0, CALL_NUMBER),
        step(JUMP_EQUAL, 5, 0, libc::SYS_mount as u32),
        step(JUMP_EQUAL, 4, 0, libc::SYS_pidfd_getfd as u32),
        step(JUMP_EQUAL, 0, 2, libc::SYS_clone as u32),
        step(LOAD_WORD, 0, 0, FIRST_ARGUMENT),
        step(JUMP_ANY_BIT, 1, 0, NAMESPACES as u32),
        step(RETURN, 0, 0, ALLOW),
        step(RETURN, 0, 0, ERRNO | libc::EPERM as u32),
    ]
}

fn never_needed(network: &Network, tier: Tier, unix_sockets: UnixSockets) -> io::Result<Denied> {
    let mut denied = Denied::new();
    for call in [
        libc::SYS_ptrace,
        libc::SYS_process_vm_readv,
        libc::SYS_process_vm_writev,
        libc::SYS_kcmp,
        libc::SYS_io_uring_setup,
        libc::SYS_io_uring_enter,
        libc::SYS_io_uring_register,
        libc::SYS_add_key,
        libc::SYS_request_key,
        libc::SYS_keyctl,
        libc::SYS_bpf,
        libc::SYS_perf_event_open,
        libc::SYS_userfaultfd,
        libc::SYS_init_module,
        libc::SYS_finit_module,
        libc::SYS_delete_module,
        libc::SYS_kexec_load,
        libc::SYS_kexec_file_load,
        libc::SYS_reboot,
        libc::SYS_swapon,
        libc::SYS_swapoff,
        libc::SYS_settimeofday,
        libc::SYS_clock_settime,
        libc::SYS_clock_adjtime,
        libc::SYS_adjtimex,
        libc::SYS_syslog,
        libc::SYS_open_by_handle_at,
        libc::SYS_name_to_handle_at,
        libc::SYS_fanotify_init,
        libc::SYS_fanotify_mark,
        libc::SYS_acct,
        libc::SYS_quotactl,
        libc::SYS_quotactl_fd,
        libc::SYS_lookup_dcookie,
        libc::SYS_move_pages,
        libc::SYS_migrate_pages,
        libc::SYS_setns,
        libc::SYS_unshare,
        libc::SYS_umount2,
        libc::SYS_move_mount,
        libc::SYS_open_tree,
        libc::SYS_fsopen,
        libc::SYS_fsconfig,
        libc::SYS_fsmount,
        libc::SYS_fspick,
        libc::SYS_mount_setattr,
        SYS_OPEN_TREE_ATTR,
        libc::SYS_pivot_root,
        libc::SYS_chroot,
    ] {
        denied.insert(call, Vec::new());
    }
    #[cfg(target_arch = "x86_64")]
    for call in [
        libc::SYS_iopl,
        libc::SYS_ioperm,
        libc::SYS_uselib,
        libc::SYS_modify_ldt,
    ] {
        denied.insert(call, Vec::new());
    }
    device_nodes(&mut denied)?;
    set_user_id(&mut denied)?;
    // A lease makes everybody else who opens the file wait, whoever it belongs to.
    let leases = [F_SETLEASE, F_NOTIFY]
        .into_iter()
        .map(|command| rule([equals(1, command)?]));
    denied.insert(libc::SYS_fcntl, leases.collect::<io::Result<_>>()?);
    // Typing into a terminal that someone else reads.
    let mut requests = vec![libc::TIOCSTI, TIOCLINUX];
    if tier == Tier::Core {
        requests.extend(FILE_FLAGS);
    }
    let requests = requests.into_iter().map(|request| rule([equals(1, request)?]));
    let mut requests = requests.collect::<io::Result<Vec<_>>>()?;
    requests.push(subvolumes()?);
    denied.insert(libc::SYS_ioctl, requests);
    if tier == Tier::Core {
        // Without a pid namespace these reach other processes of the same user.
        for call in [
            libc::SYS_prlimit64,
            libc::SYS_sched_setaffinity,
            libc::SYS_sched_setattr,
            libc::SYS_sched_setparam,
            libc::SYS_sched_setscheduler,
        ] {
            denied.insert(call, vec![rule([differs(0, 0)?])?]);
        }
        // Zero means the caller, its process group, or every process of its user.
        for (call, everyone) in [
            (libc::SYS_setpriority, libc::PRIO_USER as u64),
            (libc::SYS_ioprio_set, IOPRIO_WHO_USER),
        ] {
            denied.insert(call, vec![rule([differs(1, 0)?])?, rule([equals(0, everyone)?])?]);
        }
        // Without an ipc namespace these are shared memory and queues of other programs.
        for call in [
            libc::SYS_shmget,
            libc::SYS_shmat,
            libc::SYS_shmctl,
            libc::SYS_semget,
            libc::SYS_semop,
            libc::SYS_semtimedop,
            libc::SYS_semctl,
            libc::SYS_msgget,
            libc::SYS_msgsnd,
            libc::SYS_msgrcv,
            libc::SYS_msgctl,
            libc::SYS_mq_open,
            libc::SYS_mq_unlink,
        ] {
            denied.insert(call, Vec::new());
        }
    }
    sockets(&mut denied, network, unix_sockets)?;
    Ok(denied)
}

/// What the owner is asked in the core tier: changes of modes, owners and times, and watching, which Landlock does not
/// know, and new processes and threads, which no kernel limit counts by operation.
pub(crate) fn asked() -> io::Result<BpfProgram> {
    const TRACE: u32 = 0x7ff0_0000;
    const USER_NOTIFICATION: u32 = 0x7fc0_0000;
    let calls: &[i64] = &[
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chmod,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chown,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_lchown,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_utime,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_utimes,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_futimesat,
        libc::SYS_fchmod,
        libc::SYS_fchmodat,
        SYS_FCHMODAT2,
        libc::SYS_fchown,
        libc::SYS_fchownat,
        libc::SYS_utimensat,
        libc::SYS_inotify_add_watch,
        libc::SYS_clone,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_fork,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_vfork,
    ];
    let rules: Denied = calls.iter().map(|call| (*call, Vec::new())).collect();
    let mut program = compile_with(rules, SeccompAction::Trace(0))?;
    // Seccompiler has no word for asking another process; it stands where "trace" would.
    for step in &mut program {
        if step.code == RETURN && step.k == TRACE {
            step.k = USER_NOTIFICATION;
        }
    }
    Ok(program)
}

/// Installs a program of [`asked`] and returns the descriptor on which its questions come.
pub(crate) fn install_listener(program: &BpfProgram) -> io::Result<OwnedFd> {
    const SET_MODE_FILTER: libc::c_uint = 1;
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    let request = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(io::Error::other)?,
        filter: program.as_ptr().cast_mut().cast(),
    };
    // SAFETY: both crates mirror the kernel's structure; the program lives until the call returns.
    let fd = unsafe { libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, flags, &raw const request) };
    match i32::try_from(fd) {
        Ok(fd) if fd >= 0 => {
            // Hands the processor from who asks to who answers, since Linux 6.6: until the question is taken, a signal can
            // interrupt the call. Without it that is only likelier.
            // SAFETY: takes numbers.
            unsafe { libc::ioctl(fd, libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS as _, SYNC_WAKE_UP) };
            // SAFETY: the descriptor is new and nobody else owns it.
            Ok(unsafe { OwnedFd::from_raw_fd(fd) })
        }
        _ => Err(io::Error::last_os_error()),
    }
}

/// `SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP`, which the libc crate does not have.
const SYNC_WAKE_UP: libc::c_ulong = 1;

/// Extended attributes: the same, but programs are used to file systems that have none.
fn attributes() -> Denied {
    [
        libc::SYS_setxattr,
        libc::SYS_lsetxattr,
        libc::SYS_fsetxattr,
        libc::SYS_removexattr,
        libc::SYS_lremovexattr,
        libc::SYS_fremovexattr,
        SYS_SETXATTRAT,
        SYS_REMOVEXATTRAT,
        SYS_FILE_SETATTR,
    ]
    .into_iter()
    .map(|call| (call, Vec::new()))
    .collect()
}

/// Whether commands may make path and abstract unix sockets. A connected pair of streams always works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnixSockets {
    /// The mount view hides the host's sockets.
    Allowed,
    Denied,
}

const TIOCLINUX: u64 = 0x541C;

const F_SETLEASE: u64 = 1024;
const F_NOTIFY: u64 = 1026;

const IOPRIO_WHO_USER: u64 = 3;

/// Newer than the libc crate; the same number everywhere.
const SYS_OPEN_TREE_ATTR: i64 = 467;
pub(crate) const SYS_FCHMODAT2: i64 = 452;
const SYS_SETXATTRAT: i64 = 463;
const SYS_REMOVEXATTRAT: i64 = 466;
const SYS_FILE_SETATTR: i64 = 469;

/// Flags, project, version, encryption and verity of a file: the kernel wants its owner, not a descriptor to write.
const FILE_FLAGS: [u64; 7] = [
    0x4008_6602, // FS_IOC_SETFLAGS
    0x4004_6602, // FS_IOC32_SETFLAGS
    0x401c_5820, // FS_IOC_FSSETXATTR
    0x4008_7602, // FS_IOC_SETVERSION
    0x4008_6604, // EXT4_IOC_SETVERSION
    0x800c_6613, // FS_IOC_SET_ENCRYPTION_POLICY
    0x4080_6685, // FS_IOC_ENABLE_VERITY
];

/// Subvolumes and snapshots of btrfs: made through a descriptor that can only be read, and Landlock is not asked. Cloning
/// of file contents has requests of the same kind, and wants a descriptor to write.
fn subvolumes() -> io::Result<SeccompRule> {
    const KIND: u64 = 0xff00;
    const BTRFS: u64 = 0x9400;
    rule([
        condition(1, Op::MaskedEq(KIND), BTRFS)?,
        differs(1, 0x4004_9409)?, // FICLONE
        differs(1, 0x4020_940d)?, // FICLONERANGE
        differs(1, 0xc018_9436)?, // FIDEDUPERANGE
    ])
}

fn sockets(denied: &mut Denied, network: &Network, unix_sockets: UnixSockets) -> io::Result<()> {
    let unix = libc::AF_UNIX as u64;
    denied.insert(libc::SYS_socketpair, pairs(unix_sockets)?);
    let mut rules = Vec::new();
    match network {
        Network::Off if unix_sockets == UnixSockets::Denied => {
            denied.insert(libc::SYS_socket, Vec::new());
            return Ok(());
        }
        Network::Off => rules.push(rule([differs(0, unix)?])?),
        Network::Ports(_) => {
            // A port list is decoration if another protocol, MPTCP or Fast Open goes past it.
            for family in [libc::AF_INET, libc::AF_INET6] {
                // Of all types only SOCK_STREAM, which is 1, has none of these bits.
                for bit in [2, 4, 8] {
                    rules.push(rule([
                        equals(0, family as u64)?,
                        condition(1, Op::MaskedEq(bit), bit)?,
                    ])?);
                }
                rules.push(rule([
                    equals(0, family as u64)?,
                    differs(2, 0)?,
                    differs(2, libc::IPPROTO_TCP as u64)?,
                ])?);
            }
            // Every other family but unix: netlink, packet, vsock, bluetooth.
            rules.push(rule([
                differs(0, libc::AF_INET as u64)?,
                differs(0, libc::AF_INET6 as u64)?,
                differs(0, unix)?,
            ])?);
            let fast_open = Op::MaskedEq(libc::MSG_FASTOPEN as u64);
            for (call, flags_index) in [
                (libc::SYS_sendto, 3),
                (libc::SYS_sendmsg, 2),
                (libc::SYS_sendmmsg, 3),
            ] {
                let fast = rule([condition(
                    flags_index,
                    fast_open.clone(),
                    libc::MSG_FASTOPEN as u64,
                )?])?;
                denied.insert(call, vec![fast]);
            }
            // Listening without a bind takes any free port, which no rule sees; an upper layer such as SMC would turn
            // the socket into one that the port rules do not know.
            denied.insert(libc::SYS_listen, Vec::new());
            denied.insert(
                libc::SYS_setsockopt,
                vec![rule([
                    equals(1, libc::IPPROTO_TCP as u64)?,
                    equals(2, libc::TCP_ULP as u64)?,
                ])?],
            );
        }
        // The internet, and asking for interfaces and routes, which netlink calls protocol 0. Vsock reaches the hypervisor, packet sockets see all
        // traffic, and the other families are kernel code that nobody looks after.
        Network::Open | Network::Loopback => rules.extend([
            rule([
                differs(0, libc::AF_INET as u64)?,
                differs(0, libc::AF_INET6 as u64)?,
                differs(0, libc::AF_NETLINK as u64)?,
                differs(0, unix)?,
            ])?,
            rule([
                equals(0, libc::AF_NETLINK as u64)?,
                differs(2, libc::NETLINK_ROUTE as u64)?,
            ])?,
        ]),
    }
    if unix_sockets == UnixSockets::Denied {
        rules.push(rule([equals(0, unix)?])?);
    }
    denied.insert(libc::SYS_socket, rules);
    Ok(())
}

/// Pairs that are more than a pipe: of another family, and of datagrams, whose ends can send to any path socket or
/// connect to it. Streams and sequenced packets stay connected to each other.
fn pairs(unix_sockets: UnixSockets) -> io::Result<Vec<SeccompRule>> {
    const TYPE_BITS: u64 = 0xf;
    let mut rules = vec![rule([differs(0, libc::AF_UNIX as u64)?])?];
    if unix_sockets == UnixSockets::Denied {
        // To the unix family a raw socket is one of datagrams.
        for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW] {
            rules.push(rule([condition(1, Op::MaskedEq(TYPE_BITS), kind as u64)?])?);
        }
    }
    Ok(rules)
}

fn device_nodes(denied: &mut Denied) -> io::Result<()> {
    let calls: &[(i64, u8)] = &[
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_mknod, 1),
        (libc::SYS_mknodat, 2),
    ];
    let file_type = Op::MaskedEq(libc::S_IFMT as u64);
    for (call, mode_index) in calls {
        let rules = [libc::S_IFCHR, libc::S_IFBLK]
            .into_iter()
            .map(|kind| rule([condition(*mode_index, file_type.clone(), kind as u64)?]))
            .collect::<io::Result<_>>()?;
        denied.insert(*call, rules);
    }
    Ok(())
}

/// A set-user-id program in the scope would give its owner's rights, root's maybe, to anyone outside. So would one with
/// root's group; other users' directories may pass on their group.
fn set_user_id(denied: &mut Denied) -> io::Result<()> {
    let calls: &[(i64, u8)] = &[
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_chmod, 1),
        (libc::SYS_fchmod, 1),
        (libc::SYS_fchmodat, 2),
        (SYS_FCHMODAT2, 2),
    ];
    let is_root = rustix::process::geteuid().is_root();
    let bits = [libc::S_ISUID, libc::S_ISGID]
        .into_iter()
        .take(if is_root { 2 } else { 1 });
    for (call, mode_index) in calls {
        let rules = bits.clone().map(|bit| {
            let bit = bit as u64;
            rule([condition(*mode_index, Op::MaskedEq(bit), bit)?])
        });
        denied.insert(*call, rules.collect::<io::Result<_>>()?);
    }
    Ok(())
}

// What is too short for seccompiler, or unknown to it, is written out: the kernel's words for it.
const LOAD_WORD: u16 = 0x20;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_GREATER_EQUAL: u16 = 0x35;
const JUMP_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;
const ERRNO: u32 = 0x0005_0000;
const ALLOW: u32 = 0x7fff_0000;
/// Where the fields of `seccomp_data` lie; of an argument the lower half, on machines that store it first.
const CALL_NUMBER: u32 = 0;
const FIRST_ARGUMENT: u32 = 16;

fn step(code: u16, if_true: u8, if_false: u8, value: u32) -> seccompiler::sock_filter {
    seccompiler::sock_filter {
        code,
        jt: if_true,
        jf: if_false,
        k: value,
    }
}

/// Seccompiler does not look at the x32 bit of a call number, which would side-step every rule on kernels that have it.
fn x32_guard() -> Option<BpfProgram> {
    if ARCH != "x86_64" {
        return None;
    }
    const X32_BIT: u32 = 0x4000_0000;
    Some(vec![
        step(LOAD_WORD, 0, 0, CALL_NUMBER),
        step(JUMP_GREATER_EQUAL, 0, 1, X32_BIT),
        step(RETURN, 0, 0, ERRNO | libc::ENOSYS as u32),
        step(RETURN, 0, 0, ALLOW),
    ])
}

fn compile(denied: Denied, errno: i32) -> io::Result<BpfProgram> {
    compile_with(denied, SeccompAction::Errno(errno as u32))
}

fn compile_with(denied: Denied, action: SeccompAction) -> io::Result<BpfProgram> {
    let arch = TargetArch::try_from(ARCH).map_err(io::Error::other)?;
    compile_for(arch, denied, action)
}

fn compile_for(arch: TargetArch, denied: Denied, action: SeccompAction) -> io::Result<BpfProgram> {
    let filter = SeccompFilter::new(denied, SeccompAction::Allow, action, arch).map_err(io::Error::other)?;
    filter
        .try_into()
        .map_err(|error: seccompiler::BackendError| io::Error::other(error))
}

fn rule<const N: usize>(conditions: [SeccompCondition; N]) -> io::Result<SeccompRule> {
    SeccompRule::new(conditions.into()).map_err(io::Error::other)
}

fn equals(index: u8, value: u64) -> io::Result<SeccompCondition> {
    condition(index, Op::Eq, value)
}

fn differs(index: u8, value: u64) -> io::Result<SeccompCondition> {
    condition(index, Op::Ne, value)
}

/// All arguments that are looked at are 32 bits wide in the kernel; what stands above them is ignored there and here.
fn condition(index: u8, op: Op, value: u64) -> io::Result<SeccompCondition> {
    SeccompCondition::new(index, Len::Dword, op, value).map_err(io::Error::other)
}

#[cfg(test)]
#[path = "seccomp_tests.rs"]
mod tests;
