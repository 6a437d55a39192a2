"""Clients nobody here wrote, against `ahma_mcp` by every way in.

Each client lists the tools, calls one, watches progress, cancels a call and sees the list of tools change. Except:
- the Inspector's command line makes one request and ends, so it lists and calls;
- fastmcp has no public way to hear of a change, so it asks again;
- the TypeScript SDK 1.x speaks only the older revisions.
mcp-remote is no client but a bridge back to stdio: the TypeScript client is put in front of it.
Arguments choose among them by words of their names.
"""

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from programs import AHMA_MCP, NODE_PROGRAMS, PYTHON, environment, scope, serving

# No client needs this long, however busy the machine.
PATIENCE_SECONDS = 180


def typescript(target, project, tools):
    return [NODE_PROGRAMS / "node", HERE / "typescript_sdk.mjs", target, project, tools]


def python(mode):
    return lambda target, project, tools: [PYTHON, HERE / "python_sdk.py", mode, target, project, tools]


def fastmcp(target, project, tools):
    return [PYTHON, HERE / "fastmcp_client.py", target, project, tools]


def inspector(era):
    def command(target, project, tools):
        kind = json.loads(target)
        place = ["--transport", "http", kind["url"]] if "url" in kind else kind["command"]
        return [HERE / "inspector.sh", era, *place]

    return command


def inspector_script(target, project, tools):
    return [HERE / "inspector_script.sh", *json.loads(target)["command"]]


CLIENTS = {
    "TypeScript SDK": (typescript, ["stdio", "http-shared", "http-isolated", "sse", "mcp-remote"]),
    "Python SDK, legacy": (python("legacy"), ["stdio", "http-shared", "http-isolated"]),
    "Python SDK, modern": (python("auto"), ["stdio", "http-shared", "http-isolated"]),
    "fastmcp": (fastmcp, ["stdio", "http-shared", "http-isolated"]),
    "Inspector, legacy": (inspector("legacy"), ["stdio", "http-shared", "http-isolated"]),
    "Inspector, modern": (inspector("modern"), ["stdio", "http-shared", "http-isolated"]),
    "ahma-inspector.sh": (inspector_script, ["stdio"]),
}


def run(client, way):
    with scope() as directory:
        project, tools = directory / "my project", directory / "tools"
        project.mkdir()
        tools.mkdir()
        flags = ["--tools-dir", tools]
        if way == "stdio":
            return start(client, {"command": [AHMA_MCP, *flags, "--sandbox-scope", project]}, project, tools)
        isolated = way == "http-isolated"
        # Isolated, the scope comes from the client's roots; shared, from the server's directory.
        listen = ["--mode", "http", "--http-port", "0", *(["--session-isolation"] if isolated else [])]
        with serving([AHMA_MCP, *listen, *flags], project) as address:
            target = {
                "sse": {"sse": f"{address}/sse"},
                "mcp-remote": {"command": [NODE_PROGRAMS / "mcp-remote", address, "--allow-http"]},
            }.get(way, {"url": address})
            return start(client, target, project, tools)


def start(client, target, project, tools):
    command = client(json.dumps(target, default=str), project, tools)
    subprocess.run(map(str, command), env=environment(), timeout=PATIENCE_SECONDS, check=True)


def main():
    failed = False
    for name, (client, ways) in CLIENTS.items():
        for way in ways:
            if sys.argv[1:] and not any(word in f"{name} {way}" for word in sys.argv[1:]):
                continue
            try:
                run(client, way)
                print(f"{name} over {way}: ok", flush=True)
            except (subprocess.SubprocessError, RuntimeError) as error:
                failed = True
                print(f"{name} over {way}: FAILED: {error}", flush=True)
    sys.exit(failed)


main()
