# SPDX-License-Identifier: GPL-3.0-or-later
"""The cloud as a whole: brought up, described, and taken down."""

from __future__ import annotations

import shutil
from pathlib import Path

import yaml

from openipu.twin.processes import ProcessError, alone, private_folder

from . import infrastructure, network_node
from .daemons import Daemons
from .parts import declare
from .prepare import fingerprint, lay_out, prepared
from .site import ADMIN_CLOUD, CACHE, REGION, TENANTS, Secrets, Site

MARK = "made-of"  # in the folder of a cloud: the prepared databases it began with
NOBODY = Secrets("", "", "", "", "")  # of a cloud that is not there yet


def prepare() -> None:
    """Make the databases that a cloud begins with, when there are none yet. Raises ProcessError."""
    _check_installed()
    with alone(CACHE):
        prepared(Site(CACHE / "cloud", NOBODY))


def _check_installed() -> None:
    infrastructure.check_installed()
    if not (CACHE / "venv" / "bin" / "keystone-manage").exists():
        raise ProcessError("OpenStack is not installed: run make openstack-up, which installs it.")


def up(state: Path, network_only: bool = False, with_network_node: bool = False) -> Site:
    """Start what does not run yet and wait until it answers. Raises ProcessError."""
    _check_installed()
    if with_network_node:
        network_node.check_possible()
    with alone(CACHE):
        known = state / "secrets.json"
        if not known.exists():
            _lay_out(state)
        site = Site(state, Secrets.read(known))
        if (state / MARK).read_text() != fingerprint(site):
            raise ProcessError(f"The cloud in {state} is another release's: end it first, with make openstack-down.")
        parts = declare(site, network_only)
        for part in parts:
            part.write(site)
        _write_clouds(site)
        daemons = Daemons(site)
        daemons.start(infrastructure.processes(site))
        # Keystone by itself: what asks it while it answers its very first request may be refused.
        for wave in (parts[:1], parts[1:]):
            daemons.start([process for part in wave for process in part.processes])
        if with_network_node:
            network_node.start(site, daemons)
    return site


def down(state: Path) -> bool:
    """End every process and remove the folder; whether there was anything. Raises ProcessError."""
    with alone(CACHE):
        if not state.exists():
            return False
        if not (state / MARK).exists():
            raise ProcessError(f"{state} holds no cloud: nothing was removed.")
        site = Site(state, NOBODY)
        Daemons(site).stop()
        network_node.clean(site)
        shutil.rmtree(state)
        return True


def _lay_out(state: Path) -> None:
    """A new cloud: copies of the prepared databases. Its secrets come last, so that it is whole once they are there."""
    site = Site(state, NOBODY)
    folder = prepared(site)
    if not private_folder(state) and not (state / MARK).exists() and any(state.iterdir()):
        raise ProcessError(f"{state} holds something else than a cloud: name another folder with --state-dir.")
    (state / MARK).write_text(folder.name)
    for path in (site.etc, site.log, site.run, site.data):
        path.mkdir(exist_ok=True)
    lay_out(folder, site)
    Secrets.read(folder / "secrets.json").write(state / "secrets.json")


def _write_clouds(site: Site) -> None:
    """The clouds.yaml, with the administrator and the tenants."""

    def cloud(user: str, project: str, password: str) -> dict[str, object]:
        auth = {
            "auth_url": site.url("keystone", "/v3"),
            "username": user,
            "password": password,
            "project_name": project,
            "user_domain_id": "default",
            "project_domain_id": "default",
        }
        return {"auth": auth, "region_name": REGION, "identity_api_version": "3"}

    clouds = {ADMIN_CLOUD: cloud("admin", "admin", site.secrets.admin)}
    clouds.update({tenant: cloud(tenant, tenant, site.secrets.tenant) for tenant in TENANTS})
    site.clouds.touch(mode=0o600)
    site.clouds.write_text(yaml.safe_dump({"clouds": clouds}, sort_keys=False))
