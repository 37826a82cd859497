# SPDX-License-Identifier: GPL-3.0-or-later
"""etcd, API server, controller manager and scheduler as background processes. They need no root."""

from __future__ import annotations

import http.client
import shutil
import ssl
from collections.abc import Callable
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from openipu.process.background import Endpoint, ProcessError, Service, check_free, private_folder

from ..hosts.site import system_environment
from .programs import SERVERS, minor_version
from .site import ADDRESS, PORTS, USERS, Site

READY_SECONDS = 120.0  # enough on a busy machine; a process that ends is noticed at once
_SERVICES = "10.96.0.0/16"  # addresses of Services
_ISSUER = "https://kubernetes.default.svc"
_REMEDY = "Stop it first, for example with python -m tools.kubernetes down in its checkout."
# Kubernetes 1.20 to 1.23 also listen without TLS on all addresses, unless this is given.
LAST_INSECURE = 23


class ControlPlane:
    """Control plane in a folder, which is removed with it."""

    def __init__(self, state: Path, client_rate: int = 0, address: str = ADDRESS) -> None:
        """``client_rate``: requests per second of controller manager and scheduler, 0 for their defaults."""
        self.site = Site(state, address)
        self._client_rate = client_rate

    @property
    def running(self) -> bool:
        """True if all processes run."""
        return all(self.service(name).running() for name in ("etcd", *SERVERS))

    def service(self, name: str) -> Service:
        """Return a process to stop or to check."""
        state = self.site.state
        return Service(name, state / f"{name}.json", state / f"{name}.log", [])

    def up(self, programs: Path) -> None:
        """Start what does not run, and wait until it is ready. ``programs``: folder. Raises ProcessError."""
        if self.running:
            return
        site = self.site
        if not private_folder(site.state) and any(site.state.iterdir()) and not site.tokens.exists():
            raise ProcessError(
                f"Cannot use {site.state}: it holds other files. Choose another folder with --state-dir."
            )
        self._stop()
        check_free([Endpoint(self.site.address, port) for port in PORTS.values()], _REMEDY)
        if not site.tokens.exists():
            _write_keys(site)
        for name in ("etcd", *SERVERS):
            self.start(name, programs)

    def start(self, name: str, programs: Path) -> None:
        """Start one process that does not run, and wait until it is ready. Raises ProcessError."""
        command, ready = self._processes(programs)[name]
        stopped = self.service(name)
        service = Service(name, stopped.pid_file, stopped.log, command, system_environment())
        service.start()
        service.wait_ready(ready, READY_SECONDS)

    def down(self) -> bool:
        """Stop all processes and remove their files. Return whether there were any. Raises ProcessError."""
        state = self.site.state
        if not state.exists():
            return False
        if not self.site.tokens.exists():
            raise ProcessError(f"Cannot remove {state}: it holds no control plane. Nothing was removed.")
        self._stop()
        shutil.rmtree(state)
        return True

    def _stop(self) -> None:
        for name in (*reversed(SERVERS), "etcd"):
            self.service(name).stop()

    def _processes(self, programs: Path) -> dict[str, tuple[list[str], Callable[[], bool]]]:
        """Return name -> command and readiness of each process."""
        site, state = self.site, self.site.state
        etcd = f"http://{site.address}:{PORTS['etcd']}"
        peer = f"http://{site.address}:{PORTS['etcd-peer']}"
        common = ["--port=0"] if minor_version(programs) <= LAST_INSECURE else []
        if self._client_rate:
            common += [f"--kube-api-qps={self._client_rate}", f"--kube-api-burst={2 * self._client_rate}"]
        given = programs / "etcd"  # the built programs have none: that of the package is used
        commands = {
            # The data is removed with the control plane, so it need not survive a power failure.
            "etcd": [
                str(given) if given.exists() else "etcd",
                f"--data-dir={state / 'etcd'}",
                f"--listen-client-urls={etcd}",
                f"--advertise-client-urls={etcd}",
                f"--listen-peer-urls={peer}",
                f"--initial-advertise-peer-urls={peer}",
                f"--initial-cluster=default={peer}",
                "--unsafe-no-fsync",
            ],
            "kube-apiserver": [
                str(programs / "kube-apiserver"),
                f"--etcd-servers={etcd}",
                f"--bind-address={site.address}",
                f"--advertise-address={site.address}",
                f"--secure-port={PORTS['kube-apiserver']}",
                f"--cert-dir={site.certs}",
                f"--service-cluster-ip-range={_SERVICES}",
                f"--service-account-key-file={state / 'accounts.pub'}",
                f"--service-account-signing-key-file={state / 'accounts.key'}",
                f"--service-account-issuer={_ISSUER}",
                f"--api-audiences={_ISSUER}",
                f"--token-auth-file={site.tokens}",
                "--authorization-mode=Node,RBAC",
                "--enable-admission-plugins=NodeRestriction",
                "--allow-privileged=true",
                "--kubelet-preferred-address-types=InternalIP",
            ],
            "kube-controller-manager": [
                str(programs / "kube-controller-manager"),
                *_component(site, "kube-controller-manager"),
                *common,
                "--use-service-account-credentials=true",
                f"--service-account-private-key-file={state / 'accounts.key'}",
                f"--root-ca-file={site.ca}",
            ],
            "kube-scheduler": [str(programs / "kube-scheduler"), *_component(site, "kube-scheduler"), *common],
        }
        paths = {"etcd": "/health", "kube-apiserver": "/readyz"}
        return {name: (command, self._probe(name, paths.get(name, "/healthz"))) for name, command in commands.items()}

    def _probe(self, name: str, path: str) -> Callable[[], bool]:
        def ready() -> bool:
            try:
                return self._status(name, path) == http.HTTPStatus.OK
            except (OSError, http.client.HTTPException):
                return False

        return ready

    def _status(self, name: str, path: str) -> int:
        if name == "etcd":
            connection = http.client.HTTPConnection(self.site.address, PORTS[name], timeout=5)
        else:
            connection = http.client.HTTPSConnection(
                self.site.address, PORTS[name], timeout=5, context=self._context(name)
            )
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        finally:
            connection.close()

    def _context(self, name: str) -> ssl.SSLContext:
        """Return the settings for TLS. The other servers create certificates in memory, which no client can know."""
        if name == "kube-apiserver":
            return ssl.create_default_context(cafile=str(self.site.ca))
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context


def _component(site: Site, name: str) -> list[str]:
    """Return the options of a client of the API server."""
    return [
        f"--kubeconfig={site.kubeconfig(name)}",
        f"--bind-address={site.address}",
        f"--secure-port={PORTS[name]}",
        "--leader-elect=false",
    ]


def _write_keys(site: Site) -> None:
    """Write tokens, configurations of clients, and the key that signs tokens of service accounts."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = site.state / "accounts.key"
    private.touch(mode=0o600)
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
    )
    (site.state / "accounts.pub").write_bytes(
        key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    tokens = site.write_tokens()
    for user in USERS:
        site.write_kubeconfig(user, tokens[user])
