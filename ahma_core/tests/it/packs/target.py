"""A small web shop with a page that an attacker likes, over HTTP and HTTPS: prints both ports, then serves until it is killed."""
import http.server
import sqlite3
import ssl
import sys
import threading
import urllib.parse


class Shop(http.server.BaseHTTPRequestHandler):
    server_version = "nginx/1.14.0"

    def version_string(self):
        return self.server_version

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        url = urllib.parse.urlparse(self.path)
        status, body = self.page(url.path, urllib.parse.parse_qs(url.query))
        self.send_response(status)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body.encode())

    def page(self, path, query):
        if path == "/":
            return 200, "<html><head><title>Shop</title></head><body>Welcome</body></html>"
        if path in ("/admin", "/login"):
            return 200, "for staff only"
        if path == "/item":
            return self.item(query.get("id", ["1"])[0])
        return 404, "nothing here"

    def item(self, number):
        database = sqlite3.connect(":memory:")
        database.execute("create table item (id integer, name text)")
        database.execute("insert into item values (1, 'lamp')")
        try:
            rows = database.execute("select name from item where id=" + number).fetchall()
            return 200, "<p>" + "".join(str(row[0]) for row in rows) + "</p>"
        except sqlite3.Error as error:
            return 500, f"SQLite error: {error}"

    def log_message(self, *_):
        pass


plain = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Shop)
secure = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Shop)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
secure.socket = context.wrap_socket(secure.socket, server_side=True)
threading.Thread(target=secure.serve_forever, daemon=True).start()
print(plain.server_port, secure.server_port, flush=True)
plain.serve_forever()
