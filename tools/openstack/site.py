# SPDX-License-Identifier: GPL-3.0-or-later
"""Address, ports, folders and secrets of a cloud."""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass, fields
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
CACHE = CHECKOUT / ".cache" / "openstack"  # persistent: installed packages and prepared databases

REGION = "RegionOne"
TENANTS = ("tenant-a", "tenant-b")  # projects, each with a user of the same name
HOSTS = ("poplar1", "poplar2")  # Poplar servers: fake hypervisors of Nova, hosts of Neutron agents
ADMIN_CLOUD = "openipu"  # name of the administrator in clouds.yaml
SYSTEM_CLOUD = "openipu-system"  # the same, for the whole system instead of a project

# The cloud has its own loopback address, so it can use the default ports.
PORTS = {
    "mariadb": 3306,
    "rabbitmq": 5672,
    "erlang": 25672,
    "epmd": 4370,  # also binds 127.0.0.1, where another Erlang may use the default 4369
    "keystone": 5000,
    "neutron": 9696,
    "glance": 9292,
    "placement": 8778,
    "nova": 8774,
    "cinder": 8776,
    "manila": 8786,
    "ironic": 6385,
    "redfish": 8443,  # of the emulated BMCs
}


@dataclass(frozen=True)
class Secrets:
    """Random passwords. They are stored in the prepared databases and created with them."""

    admin: str
    tenant: str
    service: str
    database: str
    queue: str

    @classmethod
    def generate(cls) -> Secrets:
        """Return new random secrets."""
        return cls(*(secrets.token_hex(12) for _ in fields(cls)))

    @classmethod
    def read(cls, path: Path) -> Secrets:
        """Return the secrets of a file."""
        return cls(**json.loads(path.read_text()))

    def write(self, path: Path) -> None:
        """Write the secrets to a file that only its owner can read."""
        path.touch(mode=0o600)
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")


@dataclass(frozen=True)
class Site:
    """Location of one cloud. The folder `state` has all its files and is removed with it."""

    state: Path
    secrets: Secrets
    address: str = "127.6.0.1"
    venv: Path = CACHE / "venv"

    @property
    def etc(self) -> Path:
        """Folder of the configuration files."""
        return self.state / "etc"

    @property
    def log(self) -> Path:
        """Folder of the logs of processes and the access logs of APIs."""
        return self.state / "log"

    @property
    def run(self) -> Path:
        """Folder of the pid files."""
        return self.state / "run"

    @property
    def data(self) -> Path:
        """Folder of databases, keys and images."""
        return self.state / "data"

    @property
    def clouds(self) -> Path:
        """Path of the clouds.yaml of this cloud."""
        return self.state / "clouds.yaml"

    def url(self, service: str, path: str = "") -> str:
        """Return the URL of an API."""
        return f"http://{self.address}:{PORTS[service]}{path}"

    def database_url(self, name: str) -> str:
        """Return the URL of a database for SQLAlchemy."""
        return f"mysql+pymysql://openstack:{self.secrets.database}@{self.address}:{PORTS['mariadb']}/{name}"

    @property
    def queue_url(self) -> str:
        """URL of the message queue for oslo.messaging."""
        return f"rabbit://openstack:{self.secrets.queue}@{self.address}:{PORTS['rabbitmq']}/"

    def program(self, name: str) -> str:
        """Return the path of a command of the installed OpenStack."""
        return str(self.venv / "bin" / name)

    def packaged_file(self, name: str) -> str:
        """Return the path of a configuration file that a package installs."""
        return str(self.venv / "etc" / name)
