"""The official Python SDK. Arguments: mode (auto: the newest revision; legacy), target (JSON), project, tools directory."""

import asyncio
import json
import sys
from pathlib import Path

from mcp import Client, StdioServerParameters
from mcp_types import ListRootsResult, Root

MODE, TARGET, PROJECT, TOOLS = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3], Path(sys.argv[4])


def target():
    if "url" in TARGET:
        return TARGET["url"]
    command, *args = TARGET["command"]
    return StdioServerParameters(command=command, args=args)


def shell(command):
    return "sandboxed_shell", {"command": command, "execution_mode": "synchronous"}


async def main():
    changed = asyncio.Event()

    async def roots(_context):
        return ListRootsResult(roots=[Root(uri=Path(PROJECT).as_uri())])

    async def heard(message):
        if "ToolListChanged" in type(getattr(message, "root", message)).__name__:
            changed.set()

    async with Client(target(), mode=MODE, list_roots_callback=roots, message_handler=heard) as client:
        assert client.protocol_version == ("2025-11-25" if MODE == "legacy" else "2026-07-28")

        # List and call: the command runs in the project.
        assert "sandboxed_shell" in await names(client)
        called = await client.call_tool(*shell("pwd"))
        assert not called.is_error and PROJECT in called.content[0].text, called

        # Progress: lines are seen while the command runs.
        seen = []

        async def progress(_value, _total, message):
            seen.append(message or "")

        await client.call_tool(*shell("for n in 1 2 3; do echo step $n; sleep 0.5; done"), progress_callback=progress)
        assert any("step" in message for message in seen), seen

        # Cancel: the call ends here, and the command ends there.
        call = asyncio.create_task(client.call_tool(*shell("sleep 1000")))
        await until(client, "running")
        call.cancel()
        await until(client, "cancelled")

        # list_changed: a new tool file is a new tool.
        if MODE == "legacy":
            add_tool()
            await changed.wait()
        else:
            async with client.listen(tools_list_changed=True) as events:
                add_tool()
                await anext(aiter(events))
        assert "added" in await names(client)


def add_tool():
    added = {"name": "added", "description": "Was added later.", "command": "true"}
    (TOOLS / "added.json").write_text(json.dumps(added))


async def names(client):
    return [tool.name for tool in (await client.list_tools()).tools]


async def until(client, state):
    """Waits until an operation is in a state."""
    while state not in await operations(client):
        await asyncio.sleep(0.1)


async def operations(client):
    return (await client.call_tool("status", {})).content[0].text


asyncio.run(main())
