# SPDX-License-Identifier: GPL-3.0-or-later
"""The prepared databases: migrated and filled once, copied at every start.

Migrations take the better part of a minute, a copy takes a second. What is prepared is kept by a
fingerprint of what went into it, so that a change of releases or of the catalogue prepares anew.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from openipu.twin.processes import ProcessError

from . import infrastructure
from .daemons import Daemons
from .part import Part, everywhere
from .parts import declare
from .rest import Admin
from .site import CACHE, CHECKOUT, PORTS, REGION, TENANTS, Secrets, Site

LOCK = CHECKOUT / "requirements" / "openstack.txt"
_KEPT = ("mysql", "keystone")  # databases, and the keys that tokens and credentials are made with
_FORMAT = 1  # of what is kept; a change prepares anew


def fingerprint(site: Site) -> str:
    """What the prepared databases depend on, as a name."""
    server = subprocess.run(["mariadbd", "--version"], env=everywhere(), check=True, capture_output=True)  # noqa: S607
    about = [
        _FORMAT,
        LOCK.read_text(),
        server.stdout,
        site.address,
        sorted(PORTS.items()),
        TENANTS,
        [(part.name, part.type, part.path, part.databases) for part in declare(site)],
    ]
    return hashlib.sha256(repr(about).encode()).hexdigest()[:16]


def prepared(site: Site) -> Path:
    """The folder of the prepared databases; made, when there is none yet. Raises ProcessError."""
    folder = CACHE / "prepared" / fingerprint(site)
    if not folder.exists():
        print("Preparing the databases, once: this takes about a minute …", flush=True)
        _prepare(folder)
        for other in folder.parent.iterdir():
            if other != folder:
                shutil.rmtree(other)
    return folder


def lay_out(folder: Path, site: Site) -> None:
    """Give a new cloud its copy."""
    for name in _KEPT:
        shutil.copytree(folder / name, site.data / name, copy_function=shutil.copyfile, dirs_exist_ok=True)
    for keys in (site.data / "keystone").iterdir():
        keys.chmod(0o700)


def _prepare(folder: Path) -> None:
    site = Site(CACHE / "prepared" / "new", Secrets.new())
    daemons = Daemons(site)
    daemons.stop()  # what an interrupted preparation left
    shutil.rmtree(site.state, ignore_errors=True)
    for path in (site.etc, site.log, site.run, site.data):
        path.mkdir(parents=True, mode=0o700)
    parts = declare(site)
    for part in parts:
        part.write(site)
    try:
        databases = [name for part in parts for name in part.databases]
        daemons.start([infrastructure.make_databases(site, databases)])
        with ThreadPoolExecutor(max_workers=len(parts)) as pool:
            list(pool.map(lambda part: _migrate(part, site), parts))
        keystone = next(part for part in parts if part.name == "keystone")
        daemons.start(keystone.processes)
        _fill(Admin(site), parts)
    finally:
        daemons.stop()
    site.secrets.write(site.data / "secrets.json")
    site.data.rename(folder)
    shutil.rmtree(site.state)


def _migrate(part: Part, site: Site) -> None:
    for command in part.migrations:
        log = site.log / f"{part.name}-migration.log"
        with log.open("ab") as output:
            done = subprocess.run(command, env=everywhere(), stdout=output, stderr=output, check=False)  # noqa: S603
        if done.returncode:
            raise ProcessError(f"The databases of {part.name} could not be made: look into {log}.")


def _fill(admin: Admin, parts: Iterable[Part]) -> None:
    """The catalogue, a user for every service, and the tenants."""
    roles = {role["name"]: role["id"] for role in admin.get("keystone", "/v3/roles")["roles"]}

    def project(name: str) -> str:
        body = {"project": {"name": name, "domain_id": "default"}}
        return str(admin.post("keystone", "/v3/projects", body)["project"]["id"])

    def user(name: str, password: str, where: str, *as_roles: str) -> None:
        body = {"user": {"name": name, "password": password, "domain_id": "default", "default_project_id": where}}
        made = admin.post("keystone", "/v3/users", body)["user"]["id"]
        for role in as_roles:
            admin.put("keystone", f"/v3/projects/{where}/users/{made}/roles/{roles[role]}")

    of_services = project("service")
    for part in parts:
        if part.name == "keystone":
            continue  # made itself by its bootstrap
        user(part.name, admin.site.secrets.service, of_services, "admin", "service")
        service = {"service": {"name": part.name, "type": part.type}}
        made = admin.post("keystone", "/v3/services", service)["service"]["id"]
        for interface in ("public", "internal", "admin"):
            endpoint = {
                "service_id": made,
                "interface": interface,
                "url": admin.site.url(part.name, part.path),
                "region_id": REGION,
            }
            admin.post("keystone", "/v3/endpoints", {"endpoint": endpoint})
    for tenant in TENANTS:
        user(tenant, admin.site.secrets.tenant, project(tenant), "member")
