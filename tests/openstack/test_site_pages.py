# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of the pages for a site with a rack work as printed. The tests share one cloud, in this order.

The POD is that of ``inventory/pod64``, as on the pages. A twin has its controller, and one emulator has its BMCs.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import ROOT
from tests.docs.blocks import blocks, commands
from tests.docs.shell import Shell, run_block, run_page
from tests.openstack.cloud_checkout import cloud_checkout
from tools.openstack import dashboard
from tools.openstack.bare_metal import bmc_variables
from tools.openstack.cloud import NO_SECRETS
from tools.openstack.site import ADMIN_CLOUD, CACHE, HOSTS, SYSTEM_CLOUD
from tools.openstack.site import Site as Cloud

BARE_METAL = ROOT / "docs/how-to/bare-metal.md"
OPENSTACK = ROOT / "docs/how-to/openstack.md"
HORIZON = ROOT / "docs/how-to/horizon.md"
POD = Path("inventory/pod64")
SECONDS = 600.0
CLOUDS = {"admin": ADMIN_CLOUD, "kolla-admin-system": SYSTEM_CLOUD}  # names on the pages
START = """
. .venv/bin/activate
export PATH="$PATH:$PWD/.cache/openstack/venv/bin" OS_CLOUD=admin
python -m tools.openstack up --bare-metal
"""
# A controller without allocations, and what a site has: an external network, an image and a flavor.
PREPARE = """
twin up
sed -i '/^allocations:/,$d' inventory/twin/pod.yml
ansible-playbook playbooks/vipu_objects.yml -i inventory/twin/pod.yml
openstack network create --external --provider-network-type flat --provider-physical-network external external
openstack subnet create --network external --subnet-range 192.0.2.0/24 --no-dhcp external
truncate -s 1M poplar.img
openstack image create --disk-format raw --public --file poplar.img poplar
openstack flavor create --vcpus 16 --ram 32768 --disk 100 poplar.1of2
"""
# The client of Ironic has the commands that it adds to the client of OpenStack elsewhere.
CLIENT = """
openstack() {
  if [ "$1" != baremetal ]; then command openstack "$@"; return; fi
  shift
  OS_AUTH_TYPE=password .cache/openstack/ironic/bin/baremetal "$@"
}
"""
# Horizon without the panel, and the package in a folder in place of a registry. pip is that of the checkout.
UNINSTALL = """
export PIP_PYTHON=$PWD/.cache/openstack/horizon/bin/python PIP_NO_INDEX=1 PIP_FIND_LINKS=$PWD/dist
hatchling build --target wheel --directory dist
pip uninstall --yes openipu
rm .cache/openstack/horizon/lib/python*/site-packages/openstack_dashboard/local/enabled/_*_ipus_panel.py
"""
INSIDE = """
before=$PATH
export PATH=$PWD/.cache/openstack/horizon/bin:$PATH
"""
FETCH = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=50).url)"


@dataclass(frozen=True)
class Site:
    """Shell in a checkout with a running cloud."""

    shell: Shell
    folder: Path

    @property
    def cloud(self) -> Cloud:
        """Address and folders of the cloud."""
        return Cloud(self.folder / ".cache/openstack/cloud", NO_SECRETS)

    def write(self, path: Path, settings: Any) -> None:
        (self.folder / path).write_text(yaml.safe_dump(settings, sort_keys=False))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    with cloud_checkout(folder, "LICENSE") as (shell, copy):
        created = Site(shell, copy)
        shell.run(START, SECONDS)
        clouds = yaml.safe_load(created.cloud.clouds.read_text())["clouds"]
        config = folder / "home/.config/openstack"
        config.mkdir(parents=True)
        config.joinpath("clouds.yaml").write_text(
            yaml.safe_dump({"clouds": {name: clouds[own] for name, own in CLOUDS.items()}})
        )
        shell.run(PREPARE, SECONDS)
        _adapt_pod(created)
        yield created


def _adapt_pod(site: Site) -> None:
    """Connect the POD to the controller of the twin, which is the open one, and change it as the pages describe."""
    path = POD / "pod.yml"
    pod = yaml.safe_load((site.folder / path).read_text())
    pod["controller"] = {"host": "127.3.1.101"}
    for kind, removed in (("allocations", "production"), ("partitions", "language")):
        pod[kind].remove(_named(pod[kind], "id", removed))
    (rack,), (changed,) = pod["racks"], settings(BARE_METAL)["pod.yml"]["racks"]
    assert rack["name"] == changed.pop("name")
    for kind, devices in changed.items():
        for device in devices:
            _named(rack[kind], "name", device["name"]).update(device)
    site.write(path, pod)
    connection = {"api_host": "{{ vipu_api_host }}", "api_port": "{{ vipu_api_port }}"}
    site.write(POD / "group_vars/controllers.yml", {"vipu_connection": connection})


def _named(rows: list[dict[str, Any]], key: str, name: str) -> dict[str, Any]:
    (row,) = (row for row in rows if row[key] == name)
    return row


def settings(page: Path) -> dict[str, Any]:
    """Return the settings of a page by the name of their file, which is in their first line."""
    found = [block.text for block in blocks(page) if block.language == "yaml" and block.text.startswith("# ")]
    return {text.split()[1]: yaml.safe_load(text) for text in found}


@pytest.mark.timeout(1200)
def test_nodes_of_ironic(site: Site) -> None:
    variables = yaml.safe_load(bmc_variables(site.cloud).read_text())
    emulator = variables["openstack_bmc"]
    password = emulator.pop("password")
    vault = {"vault_bmc_password": password, "vault_idrac_password": password}
    for name, own in settings(BARE_METAL).items():
        if name.startswith("group_vars/"):
            site.write(POD / name, {"openstack_bmc": {**own["openstack_bmc"], **emulator}, **vault})
    site.shell.run(CLIENT, 20)
    for block in commands(BARE_METAL):
        # Readers run the blocks of a port group in different shells, so none has the variables of another.
        text = f"(\n{block.text})\n" if block.language == "sh" else block.text
        run_block(replace(block, text=text), site.shell, SECONDS)


@pytest.mark.timeout(1200)
def test_networks_and_a_vpod(site: Site) -> None:
    order = settings(OPENSTACK)["order.yml"]
    assert order["vpod_poplar_server"] == "server2"
    site.write(Path("order.yml"), {**order, "vpod_poplar_server": HOSTS[0]})
    run_page(OPENSTACK, site.shell, SECONDS)


@pytest.mark.timeout(1200)
def test_the_panel_of_horizon(site: Site) -> None:
    horizon = site.folder / ".cache/openstack/horizon"
    horizon.unlink()
    shutil.copytree(CACHE / "horizon", horizon, symlinks=True)
    install, teams = commands(HORIZON)
    shell = site.shell
    shell.run(UNINSTALL, SECONDS)
    shell.run(INSIDE, 20)
    run_block(install, shell, SECONDS)
    shell.run("PATH=$before", 20)
    shell.run(f"cp -r {POD} inventory/mine", 20)
    run_block(teams, shell, SECONDS)
    pod = site.folder / "pod.json"
    assert json.loads(pod.read_text())["teams"] == {"research": {"ipus": 32, "project": "research"}}
    shell.run(f"python -m tools.openstack up --horizon --pod {pod}", SECONDS)
    login = shell.run(f"python -c '{FETCH}' {dashboard.url(site.cloud)}project/ipus/", 60)
    assert "/auth/login/?next=/project/ipus/" in login
