# SPDX-License-Identifier: GPL-3.0-or-later
"""What a service of OpenStack is made of, as data; `parts/` declares one each."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .probes import Probe, http_answers
from .site import PORTS, REGION, Site

Value = str | int | bool | Sequence[str]
Ini = Mapping[str, Mapping[str, Value]]

INSIDE = Path(__file__).parent / "inside"  # programs that run with the cloud's own Python


@dataclass(frozen=True)
class Process:
    """One that runs as long as the cloud does."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    ports: Sequence[int] = ()  # that must be free before it starts
    ready: Probe | None = None  # whether it answers, when that can be asked


@dataclass(frozen=True)
class Part:
    """A service: what it needs before it runs, what the catalogue says of it, and what runs."""

    name: str
    type: str
    path: str  # of its endpoint
    databases: Sequence[str]
    config: Mapping[str, Ini]  # by file name, below etc/<name>/
    migrations: Sequence[Sequence[str]]  # commands that make its databases, in order
    processes: Sequence[Process]
    folders: Sequence[str] = ()  # below data/<name>/

    def write(self, site: Site) -> None:
        """Write its configuration and make its folders."""
        folder = site.etc / self.name
        folder.mkdir(parents=True, exist_ok=True)
        for name, ini in self.config.items():
            (folder / name).write_text(render(ini))
        for name in ("", *self.folders):
            (site.data / self.name / name).mkdir(parents=True, exist_ok=True)


def render(ini: Ini) -> str:
    """Lay out a configuration as oslo.config reads it: an option with several values is repeated."""
    lines = []
    for section, options in ini.items():
        lines.append(f"[{section}]")
        for name, value in options.items():
            values = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
            lines += [f"{name} = {one}" for one in values]
    return "\n".join(lines) + "\n"


def api(site: Site, service: str, module: str, environment: Mapping[str, str], *arguments: str) -> Process:
    """The process that serves an API: a WSGI module of the service, which reads its arguments from sys.argv."""
    command = [site.program("python"), str(INSIDE / "api.py"), f"{site.address}:{PORTS[service]}"]
    command += [str(site.log / f"{service}-access.log"), module, *arguments]
    ready = http_answers(site.address, PORTS[service])
    return Process(f"{service}-api", command, environment, [PORTS[service]], ready)


def daemon(site: Site, name: str, config: Path) -> Process:
    """A process that works off the message queue."""
    return Process(name, [site.program(name), "--config-file", str(config)])


def everywhere() -> dict[str, str]:
    """The environment of every process: nothing of the caller's Python or OpenStack settings."""
    kept = {name: value for name, value in os.environ.items() if name in ("HOME", "LANG", "LC_ALL", "TZ", "USER")}
    return {**kept, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONWARNINGS": "ignore", "PYTHONUNBUFFERED": "1"}


def as_service(site: Site, user: str) -> dict[str, Value]:
    """How a service signs in at Keystone, for a section of its configuration."""
    return {
        "auth_type": "password",
        "auth_url": site.url("keystone", "/v3"),
        "username": user,
        "password": site.secrets.service,
        "project_name": "service",
        "user_domain_id": "default",
        "project_domain_id": "default",
    }


def as_client(site: Site, user: str) -> dict[str, Value]:
    """The same, for a section that tells how to reach another service."""
    return {**as_service(site, user), "region_name": REGION}


def guarded(site: Site, user: str) -> dict[str, Value]:
    """The section `keystone_authtoken`: how a service checks its callers' tokens."""
    return {
        **as_service(site, user),
        "www_authenticate_uri": site.url("keystone", "/v3"),
        "service_token_roles": "service",
        "service_token_roles_required": True,
    }
