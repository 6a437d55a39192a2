"""A stdio MCP server that has everything the conformance suite asks of a server, for revisions 2025-11-25 and 2026-07-28.

Started behind `ahma_http_bridge`, so that what the suite judges is the bridge: this program checks nothing that is HTTP's
business. Python's standard library only. A request is of the newer revision if its `_meta` says so.
"""

import json
import sys
import threading

import catalog
import content
import tasks
import tools
from wire import Client, Failure, Request, INVALID_PARAMS, METHOD_NOT_FOUND, UNSUPPORTED_VERSION

CAPABILITIES = {
    "completions": {},
    "logging": {},
    "prompts": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "tools": {"listChanged": True},
    "extensions": {tasks.EXTENSION: {}},
}
SERVER_INFO = {"name": "everything", "version": "1.0.0"}
MODERN = "2026-07-28"
LEGACY = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]

# Methods of both revisions, then those of one.
SHARED = {
    "completion/complete": lambda request: content.complete(),
    "prompts/get": content.get_prompt,
    "prompts/list": lambda request: catalog.listed(prompts=catalog.PROMPTS),
    "resources/list": lambda request: catalog.listed(resources=catalog.RESOURCES),
    "resources/read": content.read_resource,
    "resources/templates/list": lambda request: catalog.listed(resourceTemplates=catalog.TEMPLATES),
    "tools/call": tools.call,
    "tools/list": lambda request: catalog.listed(tools=catalog.TOOLS),
}
ONLY_LEGACY = {
    "initialize": lambda request: {
        "protocolVersion": version if (version := request.params["protocolVersion"]) in LEGACY else LEGACY[0],
        "capabilities": CAPABILITIES,
        "serverInfo": SERVER_INFO,
    },
    "logging/setLevel": lambda request: {},
    "ping": lambda request: {},
    "resources/subscribe": lambda request: {},
    "resources/unsubscribe": lambda request: {},
}
ONLY_MODERN = {
    "server/discover": lambda request: {
        **catalog.CACHING,
        "supportedVersions": [MODERN, *LEGACY],
        "capabilities": CAPABILITIES,
        "_meta": {"io.modelcontextprotocol/serverInfo": SERVER_INFO},
    },
    "subscriptions/listen": lambda request: request.client.listen(request),
    "tasks/cancel": tasks.cancel,
    "tasks/get": tasks.get,
    "tasks/update": tasks.update,
}


def answer(request):
    """The result of a request; raises `Failure`."""
    if request.version is None:
        methods = SHARED | ONLY_LEGACY
    elif request.version == MODERN:
        methods = SHARED | ONLY_MODERN
        if request.meta("clientCapabilities") is None:
            raise Failure(INVALID_PARAMS, "_meta lacks the client's capabilities")
    else:
        data = {"supported": [MODERN, *LEGACY], "requested": request.version}
        raise Failure(UNSUPPORTED_VERSION, "unsupported protocol version", data)
    if request.method not in methods:
        raise Failure(METHOD_NOT_FOUND, f"no such method: {request.method}")
    result = methods[request.method](request)
    return result if request.version is None else {"resultType": "complete", **result}


def serve(request):
    try:
        result = answer(request)
    except Failure as failure:
        request.client.fail(request.id, failure)
    else:
        request.client.answer(request.id, result)


def main():
    client = Client()
    for line in sys.stdin:
        message = json.loads(line)
        if "method" not in message:
            client.answered(message)
        elif "id" in message:
            # A thread each: some tools wait for the client, which must be heard meanwhile.
            threading.Thread(target=serve, args=(Request(client, message),), daemon=True).start()
        elif message["method"] == "notifications/cancelled":
            client.cancelled(message["params"]["requestId"])


main()
