"""JSON-RPC over stdin and stdout: what a handler sees of a request and of the client behind it."""

import itertools
import json
import queue
import sys
import threading

INVALID_PARAMS = -32602
METHOD_NOT_FOUND = -32601
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022
META = "io.modelcontextprotocol/"


class Failure(Exception):
    """Ends a request with a JSON-RPC error."""

    def __init__(self, code, message, data=None):
        super().__init__(message)
        self.error = {"code": code, "message": message} | ({} if data is None else {"data": data})


class Request:
    def __init__(self, client, message):
        self.client = client
        self.id = message["id"]
        self.method = message["method"]
        self.params = message.get("params") or {}
        self.version = self.meta("protocolVersion")

    def meta(self, name):
        return (self.params.get("_meta") or {}).get(META + name)

    @property
    def capabilities(self):
        """What the client declared with this request."""
        return self.meta("clientCapabilities") or {}

    def progress(self, value, total, message):
        token = (self.params.get("_meta") or {}).get("progressToken")
        if token is not None:
            step = {"progressToken": token, "progress": value, "total": total, "message": message}
            self.client.notify("notifications/progress", step)

    def log(self, text):
        """Wanted always in the older revisions, and only by name in the newer one."""
        if self.version is None or self.meta("logLevel"):
            self.client.notify("notifications/message", {"level": "info", "data": text})


class Client:
    def __init__(self):
        self._writing = threading.Lock()
        self._numbers = itertools.count(1)
        self._asked = {}
        self._listeners = {}

    def _send(self, message):
        with self._writing:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            sys.stdout.flush()

    def answer(self, id, result):
        self._send({"id": id, "result": result})

    def fail(self, id, failure):
        self._send({"id": id, "error": failure.error})

    def notify(self, method, params):
        self._send({"method": method, "params": params})

    def ask(self, method, params):
        """Asks the client something, which only the older revisions allow. Waits for the result."""
        id = f"everything-{next(self._numbers)}"
        answer = self._asked[id] = queue.Queue()
        self._send({"id": id, "method": method, "params": params})
        return answer.get().get("result") or {}

    def answered(self, message):
        if waiting := self._asked.pop(message["id"], None):
            waiting.put(message)

    def listen(self, request):
        """`subscriptions/listen`: stays open until the client cancels it."""
        wanted = request.params.get("notifications") or {}
        over = threading.Event()
        self._listeners[request.id] = (wanted, over)
        self.notify(
            "notifications/subscriptions/acknowledged",
            {"notifications": wanted, "_meta": {META + "subscriptionId": request.id}},
        )
        over.wait()
        return {}

    def cancelled(self, id):
        _, over = self._listeners.pop(id, (None, None))
        if over:
            over.set()

    def changed(self, kind):
        """Tells of a changed list: everybody in the older revisions, in the newer one those who listen for it."""
        method = f"notifications/{kind}/list_changed"
        self.notify(method, {})
        for id, (wanted, _) in list(self._listeners.items()):
            if wanted.get(f"{kind}ListChanged"):
                self.notify(method, {"_meta": {META + "subscriptionId": id}})
