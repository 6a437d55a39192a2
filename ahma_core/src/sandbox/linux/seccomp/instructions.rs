//! Programs written out in the kernel's instructions: too short for seccompiler, or unknown to it.

use seccompiler::{BpfProgram, sock_filter};

pub(super) const LOAD_WORD: u16 = 0x20;
pub(super) const JUMP_EQUAL: u16 = 0x15;
#[cfg(any(test, target_arch = "x86_64"))]
pub(super) const JUMP_GREATER_EQUAL: u16 = 0x35;
pub(super) const JUMP_ANY_BIT: u16 = 0x45;
pub(super) const RETURN: u16 = 0x06;
pub(super) const ERRNO: u32 = 0x0005_0000;
pub(super) const ALLOW: u32 = 0x7fff_0000;
/// Offsets in `seccomp_data`; of an argument the lower half, on little-endian machines.
const CALL_NUMBER: u32 = 0;
const FIRST_ARGUMENT: u32 = 16;

/// Denies commands what the jail or a supervisor needs: mounting an operation's `/proc`, taking a descriptor of a process
/// with a notified call, making namespaces. Other architectures and the x32 bit are refused by the inherited filters.
pub(crate) fn command_filter() -> BpfProgram {
    const NAMESPACES: i32 = libc::CLONE_NEWNS
        | libc::CLONE_NEWCGROUP
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUSER
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET;
    vec![
        instruction(LOAD_WORD, 0, 0, CALL_NUMBER),
        instruction(JUMP_EQUAL, 5, 0, libc::SYS_mount as u32),
        instruction(JUMP_EQUAL, 4, 0, libc::SYS_pidfd_getfd as u32),
        instruction(JUMP_EQUAL, 0, 2, libc::SYS_clone as u32),
        instruction(LOAD_WORD, 0, 0, FIRST_ARGUMENT),
        instruction(JUMP_ANY_BIT, 1, 0, NAMESPACES as u32),
        instruction(RETURN, 0, 0, ALLOW),
        instruction(RETURN, 0, 0, ERRNO | libc::EPERM as u32),
    ]
}

/// Refuses call numbers with the x32 bit, which seccompiler does not look at and which would evade every rule on kernels
/// that have it.
#[cfg(target_arch = "x86_64")]
pub(super) fn x32_filter() -> BpfProgram {
    const X32_BIT: u32 = 0x4000_0000;
    vec![
        instruction(LOAD_WORD, 0, 0, CALL_NUMBER),
        instruction(JUMP_GREATER_EQUAL, 0, 1, X32_BIT),
        instruction(RETURN, 0, 0, ERRNO | libc::ENOSYS as u32),
        instruction(RETURN, 0, 0, ALLOW),
    ]
}

fn instruction(code: u16, if_true: u8, if_false: u8, value: u32) -> sock_filter {
    sock_filter {
        code,
        jt: if_true,
        jf: if_false,
        k: value,
    }
}
