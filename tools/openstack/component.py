# SPDX-License-Identifier: GPL-3.0-or-later
"""Data model of a component of the cloud, such as an OpenStack service. `components/` declares one per module."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .probes import Probe, responds_to_http
from .site import PORTS, REGION, Site

Value = str | int | bool | Sequence[str]
Ini = Mapping[str, Mapping[str, Value]]

INSIDE = Path(__file__).parent / "inside"  # programs that run in the virtual environment of the cloud


@dataclass(frozen=True)
class Process:
    """Process that runs as long as the cloud."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    ports: Sequence[int] = ()  # must be free before the start
    ready: Probe | None = None  # None: the process has no interface to probe
    follows: bool = False  # start it when all processes before it in the list are ready


@dataclass(frozen=True)
class Component:
    """Component: configuration, databases, entry in the service catalogue and processes."""

    name: str
    type: str
    path: str  # path of the endpoint
    databases: Sequence[str]
    config: Mapping[str, Ini]  # file name in etc/<name>/ to content
    migrations: Sequence[Sequence[str]]  # commands that create the tables, in order
    processes: Sequence[Process]
    folders: Sequence[str] = ()  # in data/<name>/

    def write(self, site: Site) -> None:
        """Write the configuration files and create the folders."""
        folder = site.etc / self.name
        folder.mkdir(parents=True, exist_ok=True)
        for name, ini in self.config.items():
            (folder / name).write_text(render(ini))
        for name in ("", *self.folders):
            (site.data / self.name / name).mkdir(parents=True, exist_ok=True)


def render(ini: Ini) -> str:
    """Return a configuration in the format of oslo.config, which repeats an option for each of its values."""
    lines = []
    for section, options in ini.items():
        lines.append(f"[{section}]")
        for name, value in options.items():
            values = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
            lines += [f"{name} = {item}" for item in values]
    return "\n".join(lines) + "\n"


def api_process(site: Site, service: str, module: str, environment: Mapping[str, str], *arguments: str) -> Process:
    """Return the process that serves the WSGI module of an API. The module reads ``arguments`` from sys.argv."""
    command = [site.program("python"), str(INSIDE / "api.py"), f"{site.address}:{PORTS[service]}"]
    command += [str(site.log / f"{service}-access.log"), module, *arguments]
    ready = responds_to_http(site.address, PORTS[service])
    return Process(f"{service}-api", command, environment, [PORTS[service]], ready)


def daemon_process(site: Site, name: str, config: Path) -> Process:
    """Return a process that receives its work from the message queue."""
    return Process(name, [site.program(name), "--config-file", str(config)])


def base_environment() -> dict[str, str]:
    """Return the environment of every process, without the Python and OpenStack settings of the caller."""
    kept = {name: value for name, value in os.environ.items() if name in ("HOME", "LANG", "LC_ALL", "TZ", "USER")}
    return {**kept, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONWARNINGS": "ignore", "PYTHONUNBUFFERED": "1"}


def service_credentials(site: Site, user: str) -> dict[str, Value]:
    """Return the configuration options with the Keystone credentials of a service."""
    return {
        "auth_type": "password",
        "auth_url": site.url("keystone", "/v3"),
        "username": user,
        "password": site.secrets.service,
        "project_name": "service",
        "user_domain_id": "default",
        "project_domain_id": "default",
    }


def client_credentials(site: Site, user: str) -> dict[str, Value]:
    """Return the configuration options of a client of another service: credentials and region."""
    return {**service_credentials(site, user), "region_name": REGION}


def authtoken_settings(site: Site, user: str) -> dict[str, Value]:
    """Return the section `keystone_authtoken`, with which a service validates the tokens of its callers."""
    return {
        **service_credentials(site, user),
        "www_authenticate_uri": site.url("keystone", "/v3"),
        "service_token_roles": "service",
        "service_token_roles_required": True,
    }
