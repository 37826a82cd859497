# SPDX-License-Identifier: GPL-3.0-or-later
"""Stand-in for Grafana, which Debian does not package: returns the password and the provisioned folders."""

from __future__ import annotations

import os
import ssl
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

PROVISIONED = Path("/etc/grafana/provisioning")


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        password = Path(os.environ["GF_SECURITY_ADMIN_PASSWORD__FILE"]).read_text().strip()
        found = sorted(path.parent.name for path in PROVISIONED.glob("*/openipu.yml") if path.read_text())
        self.send_response(200)
        self.end_headers()
        self.wfile.write(" ".join([password, *found]).encode())


def main() -> None:
    server = HTTPServer((os.environ["GF_SERVER_HTTP_ADDR"], int(os.environ["GF_SERVER_HTTP_PORT"])), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.environ["GF_SERVER_CERT_FILE"], os.environ["GF_SERVER_CERT_KEY"])
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
