"""Asks the listener of one's own server, in ways that make it hard to tell who asks.

Usage: knock.py HOST PORT TRICK ERA. Waits for the file `begin`, connects and asks, writes `ready`, waits for `go`, and
writes what came back to `answer`.
"""

import array
import json
import os
import socket
import sys
import threading
import time

RECVFROM = {"x86_64": 45, "aarch64": 207}[os.uname().machine]
HOST, PORT, TRICK, ERA = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]


def wait_for(name):
    while not os.path.exists(name):
        time.sleep(0.01)


def question():
    client = {"name": "knock", "version": "1"}
    headers = "Host: localhost\r\nContent-Type: application/json\r\nAccept: application/json\r\n"
    if ERA == "modern":
        start = "io.modelcontextprotocol/"
        meta = {start + "protocolVersion": "2026-07-28", start + "clientCapabilities": {}, start + "clientInfo": client}
        message = {"method": "tools/list", "params": {"_meta": meta}}
        headers += "MCP-Protocol-Version: 2026-07-28\r\nMCP-Method: tools/list\r\n"
    else:
        params = {"protocolVersion": "2025-11-25", "capabilities": {"roots": {}}, "clientInfo": client}
        message = {"method": "initialize", "params": params}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, **message})
    return f"POST /mcp HTTP/1.0\r\n{headers}Content-Length: {len(body)}\r\n\r\n{body}".encode()


def connect():
    connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262 if TRICK == "multipath" else 0)
    if TRICK == "another address":
        probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            probe.connect(("192.0.2.1", 9))
            connection.bind((probe.getsockname()[0], 0))
        except OSError:
            pass
    connection.connect((HOST, PORT))
    connection.sendall(question())
    return connection


def read(connection):
    answer = b""
    while chunk := connection.recv(4096):
        answer += chunk
    return answer


def waits_in_recv(thread):
    """Returns once the thread is inside the system call, whose number comes first."""
    first = f"{RECVFROM} "
    while not open(f"/proc/self/task/{thread.native_id}/syscall").read().startswith(first):
        time.sleep(0.01)


def knock():
    """The answer, once the listener has had time to look."""
    connection = connect()
    if TRICK == "in a message":
        one, other = socket.socketpair()
        one.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [connection.fileno()]))])
        connection.close()
        open("ready", "w").close()
        wait_for("go")
        _, ancillary, _, _ = other.recvmsg(1, socket.CMSG_SPACE(4))
        return read(socket.socket(fileno=array.array("i", ancillary[0][2])[0]))
    if TRICK == "in a call":
        answers = []
        reader = threading.Thread(target=lambda: answers.append(connection.recv(4096)))
        reader.start()
        waits_in_recv(reader)
        os.close(connection.fileno())
        open("ready", "w").close()
        reader.join()
        return answers[0]
    if TRICK == "closed":
        connection.close()
        open("ready", "w").close()
        wait_for("go")
        return b"nothing to read"
    open("ready", "w").close()
    wait_for("go")
    return read(connection)


def main():
    wait_for("begin")
    if TRICK == "orphan" and os.fork():
        # The first one waits, so that the call goes on; who asks has lost its parent.
        return wait_for("answer")
    if TRICK == "orphan":
        os.setsid()
        if os.fork():
            os._exit(0)
    answer = knock()
    with open("answer.tmp", "wb") as file:
        file.write(answer)
    os.rename("answer.tmp", "answer")


main()
