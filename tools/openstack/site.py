# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the cloud lives: its address, ports, folders and secrets."""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
CACHE = CHECKOUT / ".cache" / "openstack"  # what lasts: the installed packages and the prepared databases

REGION = "RegionOne"
TENANTS = ("tenant-a", "tenant-b")  # projects, and a user of the same name in each
HOSTS = ("poplar1", "poplar2")  # Poplar servers: fake hypervisors of Nova, and hosts of Neutron's agents
ADMIN_CLOUD = "openipu"  # the administrator's name in clouds.yaml

# All on one loopback address of the cloud's own, so the ports can be those that everybody knows.
PORTS = {
    "mariadb": 3306,
    "rabbitmq": 5672,
    "erlang": 25672,
    "epmd": 4370,  # also binds 127.0.0.1, where 4369 may be taken by another Erlang
    "keystone": 5000,
    "neutron": 9696,
    "glance": 9292,
    "placement": 8778,
    "nova": 8774,
    "cinder": 8776,
    "manila": 8786,
}


@dataclass(frozen=True)
class Secrets:
    """Made at random with the prepared databases, which know them."""

    admin: str
    tenant: str
    service: str
    database: str
    queue: str

    @classmethod
    def new(cls) -> Secrets:
        """Unguessable ones."""
        return cls(*(secrets.token_hex(12) for _ in fields(cls)))

    @classmethod
    def read(cls, path: Path) -> Secrets:
        """Those that were written."""
        return cls(**json.loads(path.read_text()))

    def write(self, path: Path) -> None:
        """Keep them for the owner only."""
        path.touch(mode=0o600)
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")


@dataclass(frozen=True)
class Site:
    """One cloud. `state` holds everything of a running one and is removed with it."""

    state: Path
    secrets: Secrets
    address: str = "127.6.0.1"
    venv: Path = CACHE / "venv"

    def at(self, state: Path) -> Site:
        """The same cloud, in another folder."""
        return replace(self, state=state)

    @property
    def etc(self) -> Path:
        """Configuration."""
        return self.state / "etc"

    @property
    def log(self) -> Path:
        """What the processes say, and the access logs of the APIs."""
        return self.state / "log"

    @property
    def run(self) -> Path:
        """Pid files."""
        return self.state / "run"

    @property
    def data(self) -> Path:
        """What the services keep: databases, keys, images."""
        return self.state / "data"

    @property
    def clouds(self) -> Path:
        """The clouds.yaml for this cloud."""
        return self.state / "clouds.yaml"

    def url(self, service: str, path: str = "") -> str:
        """Where an API answers."""
        return f"http://{self.address}:{PORTS[service]}{path}"

    def database(self, name: str) -> str:
        """What SQLAlchemy connects to."""
        return f"mysql+pymysql://openstack:{self.secrets.database}@{self.address}:{PORTS['mariadb']}/{name}"

    @property
    def queue(self) -> str:
        """What oslo.messaging connects to."""
        return f"rabbit://openstack:{self.secrets.queue}@{self.address}:{PORTS['rabbitmq']}/"

    def program(self, name: str) -> str:
        """A command of the installed OpenStack."""
        return str(self.venv / "bin" / name)

    def shipped(self, name: str) -> str:
        """A configuration file that comes with a package."""
        return str(self.venv / "etc" / name)
