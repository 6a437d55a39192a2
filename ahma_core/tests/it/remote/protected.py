"""An MCP server behind OAuth, and its authorization server (RFC 8414, 7591, 7636, 9728), in one small program.

Prints its address on the first line of stderr. Whoever opens the login page is logged in at once.
"""

import base64
import hashlib
import json
import secrets
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlparse

challenges = {}  # code -> PKCE challenge
access_tokens = set()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def base(self):
        return f"http://127.0.0.1:{self.server.server_port}"

    def answer(self, status, body, headers=()):
        text = json.dumps(body).encode() if body is not None else b""
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()

    def do_GET(self):
        url = urlparse(self.path)
        base = self.base()
        if url.path == "/.well-known/oauth-protected-resource/mcp":
            self.answer(200, {"resource": f"{base}/mcp", "authorization_servers": [base]})
        elif url.path == "/.well-known/oauth-authorization-server":
            self.answer(200, {
                "issuer": base,
                "authorization_endpoint": f"{base}/authorize",
                "token_endpoint": f"{base}/token",
                "registration_endpoint": f"{base}/register",
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
            })
        elif url.path == "/authorize":
            query = {name: values[0] for name, values in parse_qs(url.query).items()}
            code = secrets.token_hex(8)
            challenges[code] = query["code_challenge"]
            back = urlencode({"code": code, "state": query["state"], "iss": base})
            self.answer(302, None, [("Location", f"{query['redirect_uri']}?{back}")])
        else:
            self.answer(404 if url.path != "/mcp" else 405, None)

    def do_POST(self):
        body = self.body()
        if self.path == "/register":
            wishes = json.loads(body)
            self.answer(201, {"client_id": "registered", "redirect_uris": wishes["redirect_uris"]})
        elif self.path == "/token":
            self.token({name: values[0] for name, values in parse_qs(body).items()})
        elif self.path == "/mcp":
            self.mcp(json.loads(body))
        else:
            self.answer(404, None)

    def token(self, form):
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        if challenges.pop(form.get("code"), None) != base64.urlsafe_b64encode(digest).rstrip(b"=").decode():
            return self.answer(400, {"error": "invalid_grant"})
        token = secrets.token_hex(16)
        access_tokens.add(token)
        self.answer(200, {"access_token": token, "token_type": "Bearer", "expires_in": 3600})

    def mcp(self, message):
        if self.headers.get("Authorization", "").removeprefix("Bearer ") not in access_tokens:
            metadata = f'{self.base()}/.well-known/oauth-protected-resource/mcp'
            return self.answer(401, None, [("WWW-Authenticate", f'Bearer resource_metadata="{metadata}"')])
        results = {
            "initialize": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "protected", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "whoami", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": "a known user"}]},
        }
        if "id" not in message:
            return self.answer(202, None)
        result = results.get(message["method"])
        outcome = {"result": result} if result else {"error": {"code": -32601, "message": "unknown method"}}
        self.answer(200, {"jsonrpc": "2.0", "id": message["id"], **outcome})


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(f"listening on http://127.0.0.1:{server.server_port}/mcp", file=sys.stderr, flush=True)
server.serve_forever()
