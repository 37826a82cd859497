# SPDX-License-Identifier: GPL-3.0-or-later
"""Start and stop a cloud, and write its clouds.yaml."""

from __future__ import annotations

import shutil
from pathlib import Path

import yaml

from openipu.process.background import ProcessError, private_folder

from ..locks import folder_lock
from . import bare_metal, dashboard, infrastructure, network_node
from .components import declare
from .daemons import Daemons
from .prepare import copy_databases, fingerprint, prepared_databases
from .site import ADMIN_CLOUD, CACHE, REGION, SYSTEM_CLOUD, TENANTS, Secrets, Site

MARKER = "made-of"  # file in the folder of a cloud: name of the prepared databases that it was created from
NO_SECRETS = Secrets("", "", "", "", "")  # before the secrets of a cloud exist


def prepare() -> None:
    """Create the prepared databases, if they are missing. Raises ProcessError."""
    _check_installed()
    with folder_lock(CACHE):
        prepared_databases(Site(CACHE / "cloud", NO_SECRETS))


def _check_installed() -> None:
    infrastructure.check_installed()
    if not (CACHE / "venv" / "bin" / "keystone-manage").exists():
        raise ProcessError("Cannot start OpenStack: it is not installed. Install and start it with make openstack-up.")


def up(
    state: Path,
    network_only: bool = False,
    with_network_node: bool = False,
    with_horizon: bool = False,
    pod: Path | None = None,
    with_bare_metal: bool = False,
) -> Site:
    """Start missing processes and wait until all are ready. ``pod``: see ``dashboard``. Raises ProcessError."""
    _check_installed()
    if with_horizon:
        dashboard.check_requirements()
    if with_network_node:
        network_node.check_requirements()
    if with_bare_metal:
        bare_metal.check_installed()
    with folder_lock(CACHE):
        secrets = state / "secrets.json"
        if not secrets.exists():
            _create(state)
        site = Site(state, Secrets.read(secrets))
        if (state / MARKER).read_text() != fingerprint(site):
            raise ProcessError(
                f"Cannot use the cloud in {state}: another release has created it. Remove it with make openstack-down."
            )
        components = declare(site, network_only)
        for component in components:
            component.write(site)
        _write_clouds(site)
        daemons = Daemons(site)
        daemons.start(infrastructure.processes(site))
        # Keystone first: it may reject requests that arrive during its very first one.
        for wave in (components[:1], components[1:]):
            daemons.start([process for component in wave for process in component.processes])
        if with_network_node:
            network_node.start(site, daemons)
        if with_horizon:
            dashboard.start(site, daemons, pod)
        if with_bare_metal:
            bare_metal.start(site, daemons)
    return site


def down(state: Path) -> bool:
    """Stop every process and remove the folder. Return whether it existed. Raises ProcessError."""
    with folder_lock(CACHE):
        if not state.exists():
            return False
        if not (state / MARKER).exists():
            raise ProcessError(f"Cannot remove {state}: it holds no cloud. Nothing was removed.")
        site = Site(state, NO_SECRETS)
        Daemons(site).stop()
        network_node.clean(site)
        shutil.rmtree(state)
        return True


def _create(state: Path) -> None:
    """Create a cloud from copies of the prepared databases. Its secrets are written last: they mark it as complete."""
    site = Site(state, NO_SECRETS)
    folder = prepared_databases(site)
    if not private_folder(state) and not (state / MARKER).exists() and any(state.iterdir()):
        raise ProcessError(f"Cannot use {state}: it holds other files. Choose another folder with --state-dir.")
    (state / MARKER).write_text(folder.name)
    for path in (site.etc, site.log, site.run, site.data):
        path.mkdir(exist_ok=True)
    copy_databases(folder, site)
    Secrets.read(folder / "secrets.json").write(state / "secrets.json")


def _write_clouds(site: Site) -> None:
    """Write the clouds.yaml with the administrator, also of the whole system, and the tenants."""

    def cloud(user: str, project: str, password: str) -> dict[str, object]:
        scope = {"project_name": project, "project_domain_id": "default"} if project else {"system_scope": "all"}
        auth = {
            "auth_url": site.url("keystone", "/v3"),
            "username": user,
            "password": password,
            "user_domain_id": "default",
            **scope,
        }
        return {"auth": auth, "region_name": REGION, "identity_api_version": "3"}

    clouds = {ADMIN_CLOUD: cloud("admin", "admin", site.secrets.admin)}
    clouds[SYSTEM_CLOUD] = cloud("admin", "", site.secrets.admin)
    clouds.update({tenant: cloud(tenant, tenant, site.secrets.tenant) for tenant in TENANTS})
    site.clouds.touch(mode=0o600)
    site.clouds.write_text(yaml.safe_dump({"clouds": clouds}, sort_keys=False))
