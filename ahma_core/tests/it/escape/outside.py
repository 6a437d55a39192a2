"""What lies outside the sandbox: a process with secrets, open doors and a memory of who knocked."""

import ctypes
import json
import os
import pty
import resource
import selectors
import signal
import socket
import sys
import termios

directory = sys.argv[1]
secret = os.environ["OUTSIDE_SECRET"].encode()
os.chdir(directory)
events = []
libc = ctypes.CDLL(None, use_errno=True)

buffer = ctypes.create_string_buffer(secret)
held = os.open("held", os.O_RDONLY)

IPC_PRIVATE, IPC_RMID, IPC_STAT = 0, 0, 2
shm = libc.shmget(IPC_PRIVATE, 64, 0o600)
libc.shmat.restype = ctypes.c_void_p
mapped = libc.shmat(shm, None, 0)
ctypes.memmove(mapped, secret, len(secret))
# Attached it would live on after its removal.
libc.shmdt(ctypes.c_void_p(mapped))


class Message(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_long), ("text", ctypes.c_char * 64)]


queue = libc.msgget(IPC_PRIVATE, 0o600)
libc.msgsnd(queue, ctypes.byref(Message(1, secret)), 64, 0)


def exists(control, identifier):
    room = ctypes.create_string_buffer(512)
    return control(identifier, IPC_STAT, room) == 0


def waiting_messages():
    room = Message()
    MSG_COPY, IPC_NOWAIT = 0o40000, 0o4000
    return libc.msgrcv(queue, ctypes.byref(room), 64, 0, MSG_COPY | IPC_NOWAIT) > 0


for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM, signal.SIGHUP, signal.SIGURG, signal.SIGRTMIN):
    signal.signal(number, lambda number, frame: events.append(f"signal {number}"))

selector = selectors.DefaultSelector()


def door(name, family, kind, address):
    opened = socket.socket(family, kind)
    opened.bind(address)
    opened.setblocking(False)
    if kind == socket.SOCK_STREAM:
        opened.listen(64)

    def knocked():
        events.append(name)
        if kind == socket.SOCK_STREAM:
            opened.accept()[0].close()
        else:
            opened.recv(4096)

    selector.register(opened, selectors.EVENT_READ, knocked)
    return opened.getsockname()


master, terminal = pty.openpty()


def told(name, descriptor):
    def read():
        events.append(name)
        os.read(descriptor, 4096)

    selector.register(descriptor, selectors.EVENT_READ, read)


told("written to the terminal", master)
told("typed into the terminal", terminal)

for name in ("stream.sock", "datagram.sock"):
    if os.path.exists(name):
        os.unlink(name)
abstract = f"ahma-escape-{os.getpid()}"
facts = {
    "pid": os.getpid(),
    "address": ctypes.addressof(buffer),
    "held": held,
    "shm": shm,
    "queue": queue,
    "abstract": abstract,
    "tty": os.ttyname(terminal),
    "tcp": door("tcp", socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))[1],
    "udp": door("udp", socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))[1],
}
door("unix stream", socket.AF_UNIX, socket.SOCK_STREAM, "stream.sock")
door("unix datagram", socket.AF_UNIX, socket.SOCK_DGRAM, "datagram.sock")
door("abstract", socket.AF_UNIX, socket.SOCK_STREAM, "\0" + abstract)
selector.register(sys.stdin, selectors.EVENT_READ, None)
print(json.dumps(facts), flush=True)



def await_what_was_written():
    """What is written to the terminal comes through in order, but not at once: our own last word shows that all is here."""
    os.write(terminal, b"\0")
    said = b""
    while not said.endswith(b"\0"):
        said += os.read(master, 4096)
    if len(said) > 1:
        events.append("written to the terminal")


while True:
    ready = [key.data for key, _ in selector.select()]
    while knocks := [knock for knock in ready if knock]:
        for knock in knocks:
            knock()
        ready = [key.data for key, _ in selector.select(0)]
    if None in ready:
        if not os.read(0, 4096):
            break
        await_what_was_written()
        print(
            json.dumps(
                {
                    "events": events,
                    "open files": resource.getrlimit(resource.RLIMIT_NOFILE),
                    "nice": os.nice(0),
                    "processors": len(os.sched_getaffinity(0)),
                    "terminal": str(termios.tcgetattr(terminal)),
                    "shared memory": exists(libc.shmctl, shm),
                    "queue": exists(libc.msgctl, queue) and waiting_messages(),
                }
            ),
            flush=True,
        )
libc.shmctl(shm, IPC_RMID, None)
libc.msgctl(queue, IPC_RMID, None)
