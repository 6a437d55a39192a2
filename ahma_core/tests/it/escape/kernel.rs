//! Attempts by interfaces of the kernel that go round the usual calls.

use super::attempt::{Attempt, Needs, Unconfined, attempt};

pub(super) const KERNEL: &[Attempt] = &[
    attempt("a ring", "python3 -c 'import ctypes; print(ctypes.CDLL(None).syscall(425, 4, ctypes.create_string_buffer(120)) >= 0 and \"ring-made\")'")
        .says("ring-made\n"),
    attempt("open by a ring", RING),
    attempt("type into a terminal", "python3 -c 'import fcntl,os; t=os.open(os.environ[\"TTY\"], os.O_RDWR|os.O_NOCTTY)
for c in b\"x\\n\": fcntl.ioctl(t, 0x5412, bytes([c]))'")
        .needs(Needs::Root),
    attempt("write to a terminal", "echo x > $TTY"),
    attempt("read from a terminal", "timeout 1 cat $TTY; stty -F $TTY -echo"),
    attempt("watch a directory outside", INOTIFY_DIRECTORY)
        .says("watching\n"),
    attempt("watch a file outside", "python3 -c 'import ctypes,os; l=ctypes.CDLL(None); print(l.inotify_add_watch(l.inotify_init(), os.environ[\"OUT\"].encode()+b\"/secret\", 0xfff) >= 0 and \"watching\")'")
        .says("watching\n"),
    attempt("watch what system programs open", "python3 -c 'import ctypes; l=ctypes.CDLL(None); i=l.inotify_init(); print([d for d in (b\"/etc/apt\", b\"/etc/init.d\", b\"/etc/pam.d\", b\"/etc/ssh\") if l.inotify_add_watch(i, d, 0xfff) >= 0] and \"watching\")'")
        .says("watching\n"),
    attempt("watch everything", "python3 -c 'import ctypes; print(ctypes.CDLL(None).fanotify_init(0, 0) >= 0 and \"watching\")'")
        .says("watching\n")
        .needs(Needs::Root),
    attempt("a lease on a file that everybody reads", "python3 -c 'import fcntl,os; fcntl.fcntl(os.open(\"/etc/passwd\", os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_RDLCK); print(\"leased\")'")
        .says("leased\n")
        .needs(Needs::Root),
    attempt("a lease on a file outside", "python3 -c 'import fcntl,os; fcntl.fcntl(os.open(os.environ[\"OUT\"]+\"/victim\", os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_RDLCK); print(\"leased\")'")
        .says("leased\n"),
    attempt("lock a file outside", "flock -n $OUT/victim echo locked").says("locked\n"),
    attempt("signal by the owner of a descriptor", "python3 - <<'END'
import fcntl, os, signal, socket
a, b = socket.socketpair()
fcntl.fcntl(a, fcntl.F_SETOWN, int(os.environ['PID'])); fcntl.fcntl(a, 10, signal.SIGUSR1)
fcntl.fcntl(a, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK); b.send(b'x')
END"),
    attempt("signal a whole group", "kill -USR1 -- -$(ps -o pgid= -p $PID | tr -d ' ')").unconfined(Unconfined::Harmful),
    attempt("signal everything", "kill -USR1 -1; true").unconfined(Unconfined::Harmful),
    attempt("another's memory pressure", "echo 1000 > /proc/$PID/oom_score_adj").after("test $(cat /proc/$PID/oom_score_adj) != 1000 || { echo 0 > /proc/$PID/oom_score_adj; touch $OUT/set; }"),
    attempt("another's name", "echo evil > /proc/$PID/comm").after("test $(cat /proc/$PID/comm) != evil || touch $OUT/renamed").unconfined(Unconfined::Either),
    attempt("programs for unknown formats", "mkdir b; mount -t binfmt_misc x b; echo ':ahma:M::ahma::/bin/true:' > /proc/sys/fs/binfmt_misc/register && echo registered")
        .says("registered\n")
        .unconfined(Unconfined::Harmful)
        .needs(Needs::Root),
    attempt("a core that a program outside takes", "echo '|/bin/true' > /proc/sys/kernel/core_pattern && echo set-it").says("set-it\n").unconfined(Unconfined::Harmful).needs(Needs::Root),
    attempt("the kernel's log", "dmesg | head -1 | grep -q . && echo read-the-log; timeout 1 dd if=/dev/kmsg bs=8k count=1 2>/dev/null | grep -q . && echo read-the-log")
        .says("read-the-log\n")
        .unconfined(Unconfined::Either),
    attempt("a disk by its device", "for d in /dev/vd? /dev/sd? /dev/nvme?n?; do head -c 1 $d | wc -c | sed s/1/read-a-disk/; done; true")
        .says("read-a-disk\n")
        .unconfined(Unconfined::Either),
    attempt("a module", "python3 -c 'import ctypes; l=ctypes.CDLL(None, use_errno=True); l.syscall(313, 0, b\"\", 0); print(ctypes.get_errno() == 8 and \"asked-for-a-module\")'")
        .says("asked-for-a-module\n")
        .unconfined(Unconfined::Either)
        .needs(Needs::Root),
    attempt("a snapshot outside, of the file systems that have them", "python3 -c 'import ctypes,os; l=ctypes.CDLL(None, use_errno=True); l.ioctl(os.open(os.environ[\"OUT\"], os.O_RDONLY), 0x5000940e, ctypes.create_string_buffer(4096)); print(ctypes.get_errno() != 1 and \"asked-for-a-snapshot\")'")
        .says("asked-for-a-snapshot\n"),
    attempt("another's keys", "python3 -c 'import ctypes; print(ctypes.CDLL(None).syscall(250, 0, -5, 1) > 0 and \"found-a-ring\")'")
        .says("found-a-ring\n")
        .unconfined(Unconfined::Either),
    attempt("a descriptor by another name", "cat /proc/self/root/proc/$PID/root$OUT/secret /proc/1/root$OUT/secret /proc/thread-self/root$OUT/secret"),
    attempt("another's threads", "cat /proc/$PID/task/$PID/environ /proc/$PID/task/$PID/root$OUT/secret"),
    attempt("mapped files of another", "cat /proc/$PID/map_files/* | head -c 10000000 | grep -a tok-; grep -a heap /proc/$PID/smaps && echo mapped").says("mapped\n"),
];

/// Everything that a ring does is done by the kernel itself, past a filter of calls.
const RING: &str = r#"python3 - <<'END'
import ctypes, mmap, os, struct
call = ctypes.CDLL(None, use_errno=True).syscall
facts = ctypes.create_string_buffer(120)
ring = call(425, 4, facts)
if ring < 0: raise SystemExit('no ring')
_, entries, *_ = struct.unpack_from('10I', facts)
head, tail, mask, count, _, _, array = struct.unpack_from('7I', facts, 40)
chead, ctail, cmask, ccount, _, cqes = struct.unpack_from('6I', facts, 80)
sent = mmap.mmap(ring, array + 4 * 4, offset=0)
done = mmap.mmap(ring, cqes + 16 * 8, offset=0x8000000)
requests = mmap.mmap(ring, 64 * 4, offset=0x10000000)
path = ctypes.create_string_buffer(os.environ['OUT'].encode() + b'/secret')
struct.pack_into('<BBHiQQII', requests, 0, 18, 0, 0, -100, 0, ctypes.addressof(path), 0, os.O_RDONLY)
struct.pack_into('<I', sent, array, 0)
struct.pack_into('<I', sent, tail, 1)
call(426, ring, 1, 1, 1, None, 0)
_, result, _ = struct.unpack_from('<QiI', done, cqes)
print(result, os.read(result, 99) if result >= 0 else '')
END"#;

const INOTIFY_DIRECTORY: &str = r#"python3 - <<'END'
import ctypes, os
libc = ctypes.CDLL(None)
for directory in (os.environ['OUT'], os.path.expanduser('~/.ssh')):
    if libc.inotify_add_watch(libc.inotify_init(), directory.encode(), 0xfff) >= 0: print('watching')
END"#;
