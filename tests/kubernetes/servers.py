# SPDX-License-Identifier: GPL-3.0-or-later
"""Servers on loopback: one with TLS and a CA of its own, and one with the same answer to each request."""

from __future__ import annotations

import base64
import datetime
import http.server
import json
import ssl
import tempfile
import threading
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class TlsServer:
    """Context manager of a server on loopback with a self-signed certificate. ``bundle``: its CA in base64."""

    def __init__(self, host: str, port: int = 0) -> None:
        self._port = port
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
        now = datetime.datetime.now(datetime.UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
            .sign(key, hashes.SHA256())
        )
        pem = certificate.public_bytes(serialization.Encoding.PEM)
        self._pem = pem + key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        self.bundle = base64.b64encode(pem).decode()

    def __enter__(self) -> TlsServer:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "server.pem"
            file.write_bytes(self._pem)
            context.load_cert_chain(file)
        self._server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", self._port), http.server.BaseHTTPRequestHandler, bind_and_activate=True
        )
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class Answering:
    """Context manager of a server that answers each request with the same JSON, such as the version of Kubernetes."""

    def __init__(self, answer: dict[str, str]) -> None:
        body = json.dumps(answer).encode()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever)

    def __enter__(self) -> Answering:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
