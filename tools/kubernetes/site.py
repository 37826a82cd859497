# SPDX-License-Identifier: GPL-3.0-or-later
"""Folders, addresses and required packages of a Kubernetes control plane."""

from __future__ import annotations

import os
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path

import yaml

from ..hosts.site import system_environment

CHECKOUT = Path(__file__).resolve().parents[2]
_FOLDER = CHECKOUT / ".cache" / "kubernetes"
STATE = _FOLDER / "default"  # default of --state-dir
# Persistent: the built programs. Several checkouts may share this folder.
CACHE = Path(os.environ.get("KUBERNETES_CACHE") or _FOLDER).absolute()

# The control plane has its own loopback address, so it can use the default ports.
ADDRESS = "127.12.0.1"
# Address of a node in network namespaces of its own, and of the control plane beside it: pods must reach it.
NODE_ADDRESS = "10.99.0.1"
NODE = "poplar1"  # name of the node
PORTS = {
    "etcd": 2379,
    "etcd-peer": 2380,
    "kube-apiserver": 6443,
    "kube-controller-manager": 10257,
    "kube-scheduler": 10259,
}

# User of a token -> its groups. The API server authorises the users with the names of components by itself.
USERS = {
    "admin": "system:masters",
    "system:kube-controller-manager": "",
    "system:kube-scheduler": "",
    "system:kube-proxy": "",
    f"system:node:{NODE}": "system:nodes",
}


@dataclass(frozen=True)
class Site:
    """Files and address of one control plane."""

    state: Path
    address: str = ADDRESS

    @property
    def certs(self) -> Path:
        """Folder of the certificate that the API server creates for itself."""
        return self.state / "certs"

    @property
    def ca(self) -> Path:
        """Certificate with which clients verify the API server."""
        return self.certs / "apiserver.crt"

    @property
    def tokens(self) -> Path:
        """File with the tokens of all users, as the API server reads it."""
        return self.state / "tokens.csv"

    def kubeconfig(self, user: str = "admin") -> Path:
        """Return the configuration of a client that acts as a user."""
        return self.state / f"{user.rpartition(':')[2]}.kubeconfig"

    def write_tokens(self) -> dict[str, str]:
        """Write new tokens of all users. Return user -> token."""
        tokens = {user: secrets.token_hex(16) for user in USERS}
        lines = [f'{token},{user},{user},"{USERS[user]}"' for user, token in tokens.items()]
        _write_private(self.tokens, "\n".join(lines) + "\n")
        return tokens

    def write_kubeconfig(self, user: str, token: str) -> None:
        """Write the configuration of a client."""
        cluster = {"server": f"https://{self.address}:{PORTS['kube-apiserver']}", "certificate-authority": str(self.ca)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "loopback", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": token}}],
            "contexts": [{"name": "loopback", "context": {"cluster": "loopback", "user": user}}],
            "current-context": "loopback",
        }
        _write_private(self.kubeconfig(user), yaml.safe_dump(config))


def missing(packages: dict[str, str]) -> list[str]:
    """Return the packages of programs or files that are not installed. ``packages``: program or path -> package."""
    path = system_environment()["PATH"]
    return sorted(
        {package for name, package in packages.items() if not shutil.which(name, path=path) and not Path(name).exists()}
    )


def _write_private(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
