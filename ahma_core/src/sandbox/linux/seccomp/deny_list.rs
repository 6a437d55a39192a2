//! The calls that no command needs.

use std::{env::consts::ARCH, io};

use seccompiler::{BpfProgram, SeccompAction, TargetArch};

use super::{
    SYS_FCHMODAT2,
    call_rules::{ArgTest, CallRules, differs, equals, masked},
    sockets::deny_sockets,
};
use crate::sandbox::{Network, Tier};

/// Which unix sockets commands may make, by path or abstract. A connected pair of streams always works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnixSockets {
    /// The mount view hides the host's sockets.
    Allowed,
    Denied,
}

/// The filters that the jail puts on itself once its view is set up.
pub(crate) fn inherited_filters(
    network: &Network,
    tier: Tier,
    unix_sockets: UnixSockets,
) -> io::Result<Vec<BpfProgram>> {
    let arch = TargetArch::try_from(ARCH).map_err(io::Error::other)?;
    let mut filters = Vec::new();
    for (calls, errno) in denied(network, tier, unix_sockets) {
        filters.push(calls.compile(arch, SeccompAction::Errno(errno as u32))?);
    }
    #[cfg(target_arch = "x86_64")]
    filters.push(super::instructions::x32_filter());
    Ok(filters)
}

/// Denied calls, with the error that each group fails with.
pub(super) fn denied(network: &Network, tier: Tier, unix_sockets: UnixSockets) -> Vec<(CallRules, i32)> {
    let mut unneeded = CallRules::always(UNNEEDED);
    deny_device_nodes(&mut unneeded);
    deny_set_user_id(&mut unneeded);
    // A lease makes every other process that opens the file wait.
    for command in [F_SETLEASE, F_NOTIFY] {
        unneeded.add(libc::SYS_fcntl, &[equals(1, command)]);
    }
    // Typing into a terminal that someone else reads.
    for request in [libc::TIOCSTI, TIOCLINUX] {
        unneeded.add(libc::SYS_ioctl, &[equals(1, request)]);
    }
    unneeded.add(libc::SYS_ioctl, &SUBVOLUMES);
    if tier == Tier::Core {
        deny_what_namespaces_hide(&mut unneeded);
    }
    deny_sockets(&mut unneeded, network, unix_sockets);
    // The flags of clone3 lie in memory, where a filter cannot look; libraries fall back to clone.
    let mut denied = vec![
        (unneeded, libc::EPERM),
        (CallRules::always(&[libc::SYS_clone3]), libc::ENOSYS),
    ];
    if tier == Tier::Core {
        denied.push((CallRules::always(EXTENDED_ATTRIBUTES), libc::ENOTSUP));
    }
    denied
}

/// Denies what reaches beyond the operation where there are no namespaces.
fn deny_what_namespaces_hide(denied: &mut CallRules) {
    for request in FILE_FLAGS {
        denied.add(libc::SYS_ioctl, &[equals(1, request)]);
    }
    // Without a pid namespace these reach other processes of the same user.
    for call in [
        libc::SYS_prlimit64,
        libc::SYS_sched_setaffinity,
        libc::SYS_sched_setattr,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setscheduler,
    ] {
        denied.add(call, &[differs(0, 0)]);
    }
    // Zero means the caller, its process group, or every process of its user.
    for (call, everyone) in [
        (libc::SYS_setpriority, libc::PRIO_USER as u64),
        (libc::SYS_ioprio_set, IOPRIO_WHO_USER),
    ] {
        denied.add(call, &[differs(1, 0)]);
        denied.add(call, &[equals(0, everyone)]);
    }
    denied.add_all(SYSTEM_V_IPC);
}

fn deny_device_nodes(denied: &mut CallRules) {
    let calls: &[(i64, u8)] = &[
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_mknod, 1),
        (libc::SYS_mknodat, 2),
    ];
    for (call, mode_index) in calls {
        for kind in [libc::S_IFCHR, libc::S_IFBLK] {
            denied.add(*call, &[masked(*mode_index, libc::S_IFMT as u64, kind as u64)]);
        }
    }
}

/// A set-user-id program in the scope would give its owner's rights, perhaps root's, to anyone outside. So would one with
/// root's group; other users' directories may pass on their group.
fn deny_set_user_id(denied: &mut CallRules) {
    let calls: &[(i64, u8)] = &[
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_chmod, 1),
        (libc::SYS_fchmod, 1),
        (libc::SYS_fchmodat, 2),
        (SYS_FCHMODAT2, 2),
    ];
    let bits: &[u32] = if rustix::process::geteuid().is_root() {
        &[libc::S_ISUID, libc::S_ISGID]
    } else {
        &[libc::S_ISUID]
    };
    for (call, mode_index) in calls {
        for bit in bits {
            denied.add(*call, &[masked(*mode_index, u64::from(*bit), u64::from(*bit))]);
        }
    }
}

const UNNEEDED: &[i64] = &[
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
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_uselib,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];

/// Shared memory, semaphores and queues of other programs, where there is no ipc namespace.
const SYSTEM_V_IPC: &[i64] = &[
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
];

/// Landlock does not know them, but programs are used to file systems that have none.
const EXTENDED_ATTRIBUTES: &[i64] = &[
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SYS_SETXATTRAT,
    SYS_REMOVEXATTRAT,
    SYS_FILE_SETATTR,
];

/// Newer than the libc crate; the same number on every architecture.
const SYS_OPEN_TREE_ATTR: i64 = 467;
const SYS_SETXATTRAT: i64 = 463;
const SYS_REMOVEXATTRAT: i64 = 466;
const SYS_FILE_SETATTR: i64 = 469;

const TIOCLINUX: u64 = 0x541C;
const F_SETLEASE: u64 = 1024;
const F_NOTIFY: u64 = 1026;
const IOPRIO_WHO_USER: u64 = 3;

/// Flags, project, version, encryption and verity of a file: the kernel asks who owns it, not for a writable descriptor.
const FILE_FLAGS: [u64; 7] = [
    0x4008_6602, // FS_IOC_SETFLAGS
    0x4004_6602, // FS_IOC32_SETFLAGS
    0x401c_5820, // FS_IOC_FSSETXATTR
    0x4008_7602, // FS_IOC_SETVERSION
    0x4008_6604, // EXT4_IOC_SETVERSION
    0x800c_6613, // FS_IOC_SET_ENCRYPTION_POLICY
    0x4080_6685, // FS_IOC_ENABLE_VERITY
];

/// Subvolumes and snapshots of btrfs: made through a read-only descriptor, without asking Landlock. Requests of the same
/// kind clone file contents; those need a writable descriptor.
const SUBVOLUMES: [ArgTest; 4] = [
    masked(1, 0xff00, 0x9400),
    differs(1, 0x4004_9409), // FICLONE
    differs(1, 0x4020_940d), // FICLONERANGE
    differs(1, 0xc018_9436), // FIDEDUPERANGE
];
