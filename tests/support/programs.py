"""What the test programs share: where things are, and a server to talk to."""

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = (ROOT / os.environ.get("CARGO_TARGET_DIR", "target")).resolve()
BUILT = TARGET / "debug"
AHMA_MCP = BUILT / "ahma_mcp"
BRIDGE = BUILT / "ahma_http_bridge"
NODE_PROGRAMS = TARGET / "test-programs" / "node_modules" / ".bin"
PYTHON = TARGET / "test-programs" / "python" / "bin" / "python"

# A loaded machine is slow; a server that says nothing for this long is broken.
START_SECONDS = 60


def environment():
    """The surroundings of a test program: our Node first."""
    return {**os.environ, "PATH": f"{NODE_PROGRAMS}:{os.environ['PATH']}", "NO_COLOR": "1"}


@contextlib.contextmanager
def serving(command, scope):
    """A server on a port of its own, by its address. Its stderr is shown if the block fails."""
    process = subprocess.Popen([*map(str, command)], cwd=scope, stderr=subprocess.PIPE, text=True, errors="replace")
    said, address, found = [], [], threading.Event()

    def read():
        for line in process.stderr:
            said.append(line)
            if not address and (match := re.search(r"https?://[0-9.]+:\d+/mcp", line)):
                address.append(match[0])
                found.set()
        found.set()

    reader = threading.Thread(target=read)
    reader.start()
    try:
        if not found.wait(START_SECONDS) or not address:
            raise RuntimeError(f"{command[0]} did not start to listen")
        yield address[0]
    except BaseException:
        sys.stderr.writelines(said[-40:])
        raise
    finally:
        process.terminate()
        process.wait()
        reader.join()


@contextlib.contextmanager
def scope():
    """A directory for a server to work in."""
    with tempfile.TemporaryDirectory(prefix="ahma-test-") as directory:
        yield Path(directory)
