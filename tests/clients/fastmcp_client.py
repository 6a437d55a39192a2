"""fastmcp's client. Arguments: target (JSON), project, tools directory. It takes the newest revision by itself."""

import asyncio
import json
import sys
from pathlib import Path

from fastmcp import Client
from fastmcp.client.transports import StdioTransport

TARGET, PROJECT, TOOLS = json.loads(sys.argv[1]), sys.argv[2], Path(sys.argv[3])


def target():
    if "url" in TARGET:
        return TARGET["url"]
    command, *args = TARGET["command"]
    return StdioTransport(command=command, args=args)


def shell(command):
    return "sandboxed_shell", {"command": command, "execution_mode": "synchronous"}


async def ignore(_message):
    pass


async def main():
    # It asks for log messages by itself; they are not for our output.
    async with Client(target(), roots=[Path(PROJECT).as_uri()], log_handler=ignore) as client:
        assert "sandboxed_shell" in [tool.name for tool in await client.list_tools()]
        called = await client.call_tool(*shell("pwd"))
        assert PROJECT in called.content[0].text, called

        seen = []

        async def progress(_value, _total, message):
            seen.append(message or "")

        await client.call_tool(*shell("for n in 1 2 3; do echo step $n; sleep 0.5; done"), progress_handler=progress)
        assert any("step" in message for message in seen), seen

        call = asyncio.create_task(client.call_tool(*shell("sleep 1000")))
        await until(client, "running")
        call.cancel()
        await until(client, "cancelled")

        # It has no public way to listen, so a change is seen by asking again.
        (TOOLS / "added.json").write_text('{"name": "added", "description": "Was added later.", "command": "true"}')
        while "added" not in [tool.name for tool in await client.list_tools()]:
            await asyncio.sleep(0.1)


async def until(client, state):
    while state not in await operations(client):
        await asyncio.sleep(0.1)


async def operations(client):
    return (await client.call_tool("status", {})).content[0].text


asyncio.run(main())
