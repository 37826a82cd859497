# SPDX-License-Identifier: GPL-3.0-or-later
"""Prepared databases: migrated and filled once, copied for every new cloud.

Migrations take most of a minute, a copy takes a second. The folder of the prepared databases is named by a
fingerprint of their inputs. So a change of releases or of the catalogue creates new ones.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlencode

from openipu.process.background import ProcessError

from . import infrastructure
from .component import Component, base_environment
from .components import declare
from .daemons import Daemons
from .rest import Admin
from .site import CACHE, CHECKOUT, PORTS, REGION, TENANTS, Secrets, Site

LOCK = CHECKOUT / "requirements" / "openstack.txt"
_COPIED = ("mysql", "keystone")  # databases, and the keys of tokens and credentials
_FORMAT = 1  # increase it to create new databases


def fingerprint(site: Site) -> str:
    """Return a hash of the inputs of the prepared databases."""
    server = subprocess.run(["mariadbd", "--version"], env=base_environment(), check=True, capture_output=True)  # noqa: S607
    inputs = [
        _FORMAT,
        LOCK.read_text(),
        server.stdout,
        site.address,
        sorted(PORTS.items()),
        TENANTS,
        [(component.name, component.type, component.path, component.databases) for component in declare(site)],
    ]
    return hashlib.sha256(repr(inputs).encode()).hexdigest()[:16]


def prepared_databases(site: Site) -> Path:
    """Return the folder of the prepared databases, which are created if missing. Raises ProcessError."""
    folder = CACHE / "prepared" / fingerprint(site)
    if not folder.exists():
        print("Creating the initial databases: this takes about a minute, only once …", flush=True)
        _prepare(folder)
        for other in folder.parent.iterdir():
            if other != folder:
                shutil.rmtree(other)
    return folder


def copy_databases(folder: Path, site: Site) -> None:
    """Copy the prepared databases into a new cloud."""
    for name in _COPIED:
        shutil.copytree(folder / name, site.data / name, copy_function=shutil.copyfile, dirs_exist_ok=True)
    for keys in (site.data / "keystone").iterdir():
        keys.chmod(0o700)


def _prepare(folder: Path) -> None:
    site = Site(CACHE / "prepared" / "new", Secrets.generate())
    daemons = Daemons(site)
    daemons.stop()  # processes of an interrupted run
    shutil.rmtree(site.state, ignore_errors=True)
    for path in (site.etc, site.log, site.run, site.data):
        path.mkdir(parents=True, mode=0o700)
    components = declare(site)
    for component in components:
        component.write(site)
    try:
        databases = [name for component in components for name in component.databases]
        daemons.start([infrastructure.create_databases(site, databases)])
        with ThreadPoolExecutor(max_workers=len(components)) as pool:
            list(pool.map(lambda component: migrate(component, site), components))
        keystone = next(component for component in components if component.name == "keystone")
        daemons.start(keystone.processes)
        _create_identities(Admin(site), components)
    finally:
        daemons.stop()
    site.secrets.write(site.data / "secrets.json")
    site.data.rename(folder)
    shutil.rmtree(site.state)


def migrate(component: Component, site: Site) -> None:
    """Create the tables of the databases of a component. Raises ProcessError."""
    for command in component.migrations:
        log = site.log / f"{component.name}-migration.log"
        with log.open("ab") as output:
            done = subprocess.run(command, env=base_environment(), stdout=output, stderr=output, check=False)  # noqa: S603
        if done.returncode:
            raise ProcessError(f"Cannot create the databases of {component.name}: see {log}.")


def _create_identities(admin: Admin, components: Iterable[Component]) -> None:
    """Create the service catalogue, a user for every service, and the tenants."""
    _create_project(admin, "service")
    for component in components:
        if component.name != "keystone":  # created by its bootstrap command
            register(admin, component)
    for tenant in TENANTS:
        _create_user(admin, tenant, admin.site.secrets.tenant, _create_project(admin, tenant), "member")


def register(admin: Admin, component: Component) -> None:
    """Create the user of a service, and its entry in the service catalogue, unless they exist. Raises ProcessError."""
    project_id = admin.get("keystone", "/v3/projects?name=service")["projects"][0]["id"]
    _create_user(admin, component.name, admin.site.secrets.service, project_id, "admin", "service")
    service_id = _find_or_create(admin, "service", {"name": component.name, "type": component.type})
    for interface in ("public", "internal", "admin"):
        key = {"service_id": service_id, "interface": interface, "region_id": REGION}
        _find_or_create(admin, "endpoint", key, url=admin.site.url(component.name, component.path))


def _find_or_create(admin: Admin, kind: str, key: dict[str, str], **values: str) -> str:
    """Return the id of an object with these values of its key. An interrupted start may have created it."""
    path = f"/v3/{kind}s"
    found = admin.get("keystone", f"{path}?{urlencode(key)}")[f"{kind}s"]
    created = found[0] if found else admin.post("keystone", path, {kind: {**key, **values}})[kind]
    return str(created["id"])


def _create_project(admin: Admin, name: str) -> str:
    return _find_or_create(admin, "project", {"name": name, "domain_id": "default"})


def _create_user(admin: Admin, name: str, password: str, project_id: str, *role_names: str) -> None:
    roles = {role["name"]: role["id"] for role in admin.get("keystone", "/v3/roles")["roles"]}
    key = {"name": name, "domain_id": "default"}
    user_id = _find_or_create(admin, "user", key, password=password, default_project_id=project_id)
    for role in role_names:
        admin.put("keystone", f"/v3/projects/{project_id}/users/{user_id}/roles/{roles[role]}")
