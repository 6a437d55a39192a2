//! Attempts on processes and the kernel.

use super::attempt::{Attempt, Needs, Unconfined, attempt};

pub(super) const PROCESSES: &[Attempt] = &[
    attempt("another root", "cat /proc/$PID/root$OUT/secret"),
    attempt("another working directory", "cat /proc/$PID/cwd/held"),
    attempt("another's open file", "cat /proc/$PID/fd/$HELD"),
    attempt("another's environment", "cat /proc/$PID/environ"),
    attempt("everyone's environment", "cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep OUTSIDE_SECRET"),
    attempt("the server's environment", "cat /proc/$SRV/environ").unconfined(Unconfined::Either),
    attempt("the server's open files", "for f in /proc/$SRV/fd/*; do readlink $f; done")
        .says("pipe:[")
        .unconfined(Unconfined::Either),
    attempt("the server's memory map", "cat /proc/$SRV/maps")
        .says("[heap]")
        .unconfined(Unconfined::Either),
    attempt("own environment", "env; cat /proc/self/environ; cat /proc/$PPID/environ")
        .unconfined(Unconfined::Contained),
    attempt("inherited descriptors", "cat <&7; for f in /proc/self/fd/*; do timeout 0.2 cat $f; done")
        .unconfined(Unconfined::Contained),
    attempt(
        "another's memory by file",
        "python3 -c 'import os; m=open(\"/proc/\"+os.environ[\"PID\"]+\"/mem\",\"rb\"); m.seek(int(os.environ[\"ADDRESS\"])); print(m.read(64))'",
    ),
    attempt(
        "another's memory by call",
        "python3 - <<'END'
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
class Vector(ctypes.Structure):
    _fields_ = [('base', ctypes.c_void_p), ('length', ctypes.c_size_t)]
room = ctypes.create_string_buffer(64)
mine = Vector(ctypes.addressof(room), 64); theirs = Vector(int(os.environ['ADDRESS']), 64)
libc.process_vm_readv(int(os.environ['PID']), ctypes.byref(mine), 1, ctypes.byref(theirs), 1, 0)
print(room.value)
END",
    ),
    attempt(
        "another's descriptor by call",
        "python3 -c 'import ctypes,os
libc=ctypes.CDLL(None); pid=os.pidfd_open(int(os.environ[\"PID\"]))
print(os.pread(libc.syscall(438, pid, int(os.environ[\"HELD\"]), 0), 99, 0))'",
    ),
    attempt(
        "trace",
        "python3 - <<'END'
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True); pid = int(os.environ['PID'])
if libc.ptrace(16, pid, None, None) == 0:
    os.waitpid(pid, 0)
    libc.ptrace(17, pid, None, ctypes.c_void_p(signal.SIGUSR1))
END",
    ),
    attempt("signal", "kill -USR1 $PID"),
    attempt("signal by descriptor", "python3 -c 'import os,signal; signal.pidfd_send_signal(os.pidfd_open(int(os.environ[\"PID\"])), signal.SIGUSR2)'"),
    attempt(
        "signal by queue",
        "python3 - <<'END'
import ctypes, os, signal
room = ctypes.create_string_buffer(128)
ctypes.c_int.from_buffer(room, 0).value = signal.SIGRTMIN
ctypes.c_int.from_buffer(room, 8).value = -1
ctypes.CDLL(None).syscall(129, int(os.environ['PID']), int(signal.SIGRTMIN), room)
END",
    ),
    attempt("signal the server", "kill -9 $SRV; sleep 0.2").unconfined(Unconfined::Harmful),
    attempt("signal what listens in front of the server", "kill -9 $FRONT; sleep 0.2").unconfined(Unconfined::Harmful),
    attempt("the environment of what listens in front of the server", "cat /proc/$FRONT/environ /proc/$FRONT/cmdline").unconfined(Unconfined::Either),
    attempt("kill the owner", "kill -9 $PPID; sleep 0.2").says("supervisor").unconfined(Unconfined::Harmful),
    attempt("kill the first process", "kill -9 1; sleep 0.2").says("supervisor").unconfined(Unconfined::Harmful),
    attempt("another's limits", "prlimit --pid $PID --nofile=100:100"),
    attempt("another's priority", "renice -n 19 -p $PID"),
    attempt("everyone's priority", "python3 -c 'import os; os.setpriority(os.PRIO_USER, 0, 1)'").unconfined(Unconfined::Harmful),
    attempt("everyone's turn at the disk", "ionice -c 2 -n 7 -u 0")
        .unconfined(Unconfined::Harmful)
        .after("ionice -p $PID | grep -q 'prio 7' && touch $OUT/set"),
    attempt("another's processors", "taskset -p 1 $PID").unconfined(Unconfined::Either),
    attempt("read shared memory", SHARED_MEMORY),
    attempt("remove shared memory", "ipcrm -m $SHM"),
    attempt("take from a queue", QUEUE),
    attempt("remove a queue", "ipcrm -q $QUEUE"),
    attempt("a mount in a new namespace", "mkdir m; unshare -Urm sh -c \"mount --bind $OUT m && cat m/secret\""),
    attempt("a new user namespace", "unshare -Ur cat $OUT/secret"),
    attempt("another's namespaces", "nsenter -t $PID -m -p cat $OUT/secret").needs(Needs::Root),
    attempt("a mount as root", "mkdir m; mount --bind $OUT m && cat m/secret; umount m").needs(Needs::Root),
    attempt("another root directory", "chroot / cat $OUT/secret").needs(Needs::Root),
    attempt("uncover what is below a mount", "umount -l /proc /tmp; umount -l $SCOPE; cat $OUT/secret")
        .unconfined(Unconfined::Harmful),
    attempt(
        "run from memory",
        "python3 - <<'END'
import os
fd = os.memfd_create('x'); os.write(fd, open('/bin/cat', 'rb').read())
os.execve(f'/proc/self/fd/{fd}', ['cat', os.environ['OUT'] + '/secret'], {})
END",
    ),
    attempt("run by the loader", "$(ls /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1 2>/dev/null) /bin/cat $OUT/secret"),
    attempt(
        "a preloaded library",
        "printf '#include <stdio.h>\\n#include <stdlib.h>\\n__attribute__((constructor)) static void f(void){char b[99]={0};FILE*h=fopen(getenv(\"T\"),\"r\");if(h&&fgets(b,98,h))puts(b);}' > p.c
         gcc -shared -fPIC -o p.so p.c && T=$OUT/secret LD_PRELOAD=./p.so /bin/true",
    ),
    attempt("a machine-wide setting", "echo 7 > /proc/sys/kernel/printk_ratelimit_burst")
        .needs(Needs::Root)
        .unconfined(Unconfined::Harmful)
        .after("test $(cat /proc/sys/kernel/printk_ratelimit_burst) != 7 || { echo 10 > /proc/sys/kernel/printk_ratelimit_burst; touch $OUT/set; }"),
    attempt("the host's name", "hostname $NAME").needs(Needs::Root).unconfined(Unconfined::Harmful)
        .after("test $(hostname) != $NAME || touch $OUT/renamed"),
    attempt("a descendant that outlives the call", "setsid nohup sh -c 'while :; do echo >> ../alive; sleep 0.02; done' >/dev/null 2>&1 &")
        .unconfined(Unconfined::Contained)
        .after("a=$(wc -c < $SCOPE/w/alive); sleep 0.2; test $a = $(wc -c < $SCOPE/w/alive) || touch $OUT/alive"),
    attempt("what another command printed", "grep -rhs tok-printed- $(dirname $SCOPE)")
        .unconfined(Unconfined::Either),
    attempt("a program named like the shell", "mkdir -p $SCOPE/bin; for n in bash sh git python3; do printf '#!/bin/sh\\ntouch %s/ran\\nexec /bin/%s \"$@\"\\n' $OUT $n > $SCOPE/bin/$n; chmod +x $SCOPE/bin/$n; done")
        .unconfined(Unconfined::Contained)
        .after("true"),
];

const SHARED_MEMORY: &str = "python3 - <<'END'
import ctypes, os
libc = ctypes.CDLL(None); libc.shmat.restype = ctypes.c_void_p
at = libc.shmat(int(os.environ['SHM']), None, 0o10000)
print(ctypes.string_at(at, 64) if at != ctypes.c_void_p(-1).value else 'refused')
END";

const QUEUE: &str = "python3 - <<'END'
import ctypes, os
room = ctypes.create_string_buffer(128)
ctypes.CDLL(None).msgrcv(int(os.environ['QUEUE']), room, 64, 0, 0o4000)
print(room.raw)
END";
