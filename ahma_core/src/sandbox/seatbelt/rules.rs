//! Rules that are the same in every profile.

use std::path::Path;

/// Programs run, and see and signal each other and nothing else. `(deny default)` closes what is not named here: Apple
/// events, launchd jobs, task ports, programs that change their user. It leaves a few operations open, as others report and
/// as tables of the system's compiler show; those that lead outside are denied by name, here and in [`NO_LINKS`].
pub(super) const PROCESSES: &[&str] = &[
    "(allow process-exec)",
    "(allow process-fork)",
    "(deny process-info*)",
    "(allow process-info* (target self))",
    "(allow process-info* (target same-sandbox))",
    "(allow signal (target self))",
    "(allow signal (target same-sandbox))",
    "(allow sysctl-read)",
    // Gives the arguments and the environment of every process of the user.
    "(deny sysctl-read (sysctl-name-prefix \"kern.procargs\"))",
    // Java and V8 set these for themselves.
    "(allow sysctl-write (sysctl-name \"kern.grade_cputype\"))",
    "(allow sysctl-write (sysctl-name \"kern.tcsm_enable\"))",
    // Ports by which some of Apple's own tools read the memory of a process. Not every version knows their names.
    "(if (defined? 'mach-task-read) (deny mach-task-read))",
    "(if (defined? 'mach-task-inspect) (deny mach-task-inspect))",
    // Variables of the firmware, which root could change for every start to come.
    "(deny nvram*)",
];

/// What may be written may also get another name.
pub(super) const WRITES: &str = "file-write* file-link";

/// Anything else could be read or changed by the name that a command gives it.
pub(super) const NO_LINKS: &str = "(deny file-link)";

/// A clone of a directory brings along what is closed or protected in it. Programs then copy file by file.
pub(super) const NO_CLONED_DIRECTORIES: &str = "(deny file-clone (vnode-type DIRECTORY))";

/// Broad reads: shells and toolchains read in too many places to name. What people own is closed again afterwards.
pub(super) const READS: &[&str] = &[
    "(allow file-read*)",
    "(allow file-map-executable)",
    "(allow file-test-existence)",
];

/// Contents that a closed place keeps to itself: they can be neither read nor cloned. Names can be seen, as every part of a
/// path is looked at. What is opened again names the same operations: some report that a rule for one operation goes
/// before one for several, whatever their order.
pub(super) const CONTENT: &str = "file-read-data file-read-xattr file-clone";

/// Places of people and of other programs, and devices: another terminal of the user's tells what is typed there.
pub(super) const CLOSED_READS: &[&str] = &[
    "/Users",
    "/Volumes",
    "/dev",
    "/private/tmp",
    "/private/var/folders",
    "/private/var/tmp",
    // What only root can read, for a server that runs as root.
    "/private/etc/krb5.keytab",
    "/private/etc/master.passwd",
    "/private/etc/ssh/ssh_host_ecdsa_key",
    "/private/etc/ssh/ssh_host_ed25519_key",
    "/private/etc/ssh/ssh_host_rsa_key",
    "/private/etc/sudoers",
    "/private/etc/sudoers.d",
    "/private/var/db/SystemKey",
    "/private/var/db/dslocal",
    "/private/var/root",
    // Other names of the same, by which the system is not meant to know them.
    "/System/Volumes/Data/Users",
    "/System/Volumes/Data/private",
];

/// Devices that every program reads or writes. `/dev/fd` is each process's own.
pub(super) const DEVICES: &[&str] = &[
    "(allow file-read-data file-read-xattr (literal \"/dev\") (literal \"/dev/null\") (literal \"/dev/zero\") (literal \"/dev/random\") (literal \"/dev/urandom\"))",
    "(allow file-read-data file-read-xattr (literal \"/dev/tty\") (literal \"/dev/ptmx\") (literal \"/dev/dtracehelper\") (literal \"/dev/autofs_nowait\") (subpath \"/dev/fd\"))",
    "(allow file-write-data (literal \"/dev/null\"))",
    "(allow file-write-data (literal \"/dev/zero\"))",
    "(allow file-write-data (literal \"/dev/tty\"))",
    "(allow file-write-data (literal \"/dev/stdout\"))",
    "(allow file-write-data (literal \"/dev/stderr\"))",
    "(allow file-write-data (literal \"/dev/dtracehelper\"))",
    "(allow file-write-data (regex \"^/dev/fd/[0-9]+$\"))",
    "(allow file-ioctl (literal \"/dev/dtracehelper\"))",
];

/// A program that others would run with the rights of its owner.
pub(super) const NO_SET_USER_ID: &str = "(deny file-write-setugid)";

/// Terminals, also those that a command makes itself; semaphores; the shared memory of the notification centre, and the
/// one by which copies of OpenMP find each other, without which numeric programs abort. No other: names lead to the memory
/// of programs outside.
pub(super) const TERMINALS_AND_MEMORY: &[&str] = &[
    "(allow pseudo-tty)",
    "(allow file-write* file-ioctl (literal \"/dev/ptmx\"))",
    "(allow file-write* file-ioctl (literal \"/dev/tty\"))",
    "(allow file-read-data file-read-xattr file-write* file-ioctl (require-all (regex \"^/dev/ttys[0-9]+$\") (extension \"com.apple.sandbox.pty\")))",
    "(allow file-ioctl (regex \"^/dev/ttys[0-9]+$\"))",
    "(allow ipc-posix-sem)",
    "(allow ipc-sysv-sem)",
    "(allow ipc-posix-shm-read* (ipc-posix-name \"apple.shm.notification_center\"))",
    "(allow ipc-posix-shm-read-data ipc-posix-shm-write-create ipc-posix-shm-write-unlink (ipc-posix-name-regex \"^/__KMP_REGISTERED_LIB_[0-9]+$\"))",
];

/// Services for names of users, temporary directories, logs, watching files and network settings. Never those of keys, of other programs or
/// of the clipboard.
pub(super) const SERVICES: &[&str] = &[
    "(allow mach-lookup (global-name \"com.apple.system.opendirectoryd.libinfo\"))",
    "(allow mach-lookup (global-name \"com.apple.system.opendirectoryd.membership\"))",
    "(allow mach-lookup (global-name \"com.apple.bsd.dirhelper\"))",
    "(allow mach-lookup (global-name \"com.apple.system.notification_center\"))",
    "(allow mach-lookup (global-name \"com.apple.logd\"))",
    "(allow mach-lookup (global-name \"com.apple.system.logger\"))",
    "(allow mach-lookup (global-name \"com.apple.FSEvents\"))",
    // Tells of proxies. Without an answer HTTP libraries abort, also in programs that connect to nothing.
    "(allow mach-lookup (global-name \"com.apple.SystemConfiguration.configd\"))",
];

/// Names on the network and trust in certificates. The latter fetches for its callers, so it is closed with the network.
pub(super) const NETWORK_SERVICES: &[&str] = &[
    "(allow mach-lookup (global-name \"com.apple.SystemConfiguration.DNSConfiguration\"))",
    "(allow mach-lookup (global-name \"com.apple.dnssd.service\"))",
    "(allow mach-lookup (global-name \"com.apple.trustd.agent\"))",
    // The same for root.
    "(allow mach-lookup (global-name \"com.apple.trustd\"))",
    "(allow network-outbound (literal \"/private/var/run/mDNSResponder\"))",
    "(allow system-socket (require-all (socket-domain AF_SYSTEM) (socket-protocol 2)))",
];

/// Reading below this path is closed, but for what the policy opens there.
pub(in crate::sandbox) fn is_closed_to_reading(path: &Path, home: Option<&Path>) -> bool {
    let closed = CLOSED_READS.iter().map(Path::new).chain(home);
    closed.into_iter().any(|closed| path.starts_with(closed))
}

/// The mark by which the processes of an operation are found; see `jail`.
pub(super) const MARK: &[&str] = &[
    "(allow mach-lookup (global-name (param \"MARK_ALLOWED\")))",
    "(deny mach-lookup (global-name (param \"MARK_DENIED\")))",
];
