# SPDX-License-Identifier: GPL-3.0-or-later
"""A TLS server with a certificate of its own CA."""

from __future__ import annotations

import base64
import datetime
import http.server
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
