# SPDX-License-Identifier: GPL-3.0-or-later
"""Neutron: ports and networks of PODs, with ``openstack.cloud`` and raw requests as peers.

``python -m tests.benchmark.neutron`` uses the OpenStack that ``make openstack-up`` starts.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import openstack
import yaml
from openstack.connection import Connection

from openipu.shared.pod.load import load
from openipu.shared.pod.openstack_networks import network_config
from tests import ROOT
from tests.openstack import cached_tokens
from tools.openstack import cloud
from tools.openstack.site import ADMIN_CLOUD, CACHE, Site

from .measure import Sample, Table, Target, alternate, command

PEERS = ROOT / ".cache/peers"
PEER_PYTHON = ROOT / ".cache/peers-openstack/bin/python"
PLAYBOOK = str(Path(sys.executable).with_name("ansible-playbook"))
VLAN = 3990  # first of the VLANs of this benchmark
Json = dict[str, Any]


class NeutronLab:
    """Running cloud, with a folder for files and plays on this host."""

    def __init__(self, site: Site, folder: Path) -> None:
        """Connect as administrator. Clients read the cloud from environment variables."""
        self.folder = folder
        self._log = site.log / "neutron-access.log"
        self.admin: Connection = openstack.connect(cloud=ADMIN_CLOUD)
        self.admin.network.update_quota(
            self.admin.current_project_id,
            **dict.fromkeys(("ports", "networks", "subnets", "rbac_policies", "security_groups"), 1000),
            security_group_rules=5000,
        )

    def pod(self, name: str, racks: int, external: str, tenants: Sequence[str] = ("tenant-a",)) -> Json:
        """Return the options of the module for a POD with racks of 16 machines.

        All tenants except the first have their own data network with machines of the first rack.
        """
        folder = self.folder / name
        folder.mkdir()
        networks = {"bmc": 0, "gw": 1, "management": 2, "data": 3, "storage": 4}
        subnets = {"bmc": "10.1.0.0/16", "gw": "10.2.0.0/16", "management": "10.3.0.0/16", "data": "10.5.0.0/16"}
        pod = {
            "plugin": "openipu.pod.pod",
            "name": name,
            "controller": {"host": "10.3.1.101"},
            "networks": {
                net: {"vlan": VLAN + number, "subnet": subnets.get(net, "10.6.0.0/16")}
                for net, number in networks.items()
            },
            "racks": [{"name": f"rack{rack}", "number": rack} for rack in range(1, racks + 1)],
            "clusters": [{"id": "cl", "racks": ["rack1"]}],
            "allocations": [
                {"id": tenant, "cluster": "cl", "machines": [f"m1-{unit}" for unit in range(4 * n + 1, 4 * n + 5)]}
                for n, tenant in enumerate(tenants[1:])
            ],
            "openstack": {
                "dns_domain": "pod.example",
                "dns_servers": ["10.2.1.101"],
                "external_network": external,
                "tenants": [
                    {"project": tenants[0]},
                    *(
                        {"project": tenant, "vlan": VLAN + 5 + n, "allocation": tenant}
                        for n, tenant in enumerate(tenants[1:])
                    ),
                ],
            },
        }
        rows = ["name,rack,unit,bmc_mac,gw_mac,rnic_mac"]
        for rack in range(1, racks + 1):
            for unit in range(1, 17):
                macs = ",".join(f"0c:42:a1:{rack:02x}:0{net}:{unit:02x}" for net in (1, 2, 5))
                rows.append(f"m{rack}-{unit},rack{rack},{unit},{macs}")
        (folder / "pod.yml").write_text(yaml.safe_dump(pod))
        (folder / "machines.csv").write_text("\n".join(rows) + "\n")
        model = load(str(folder / "pod.yml"))
        if model.cloud is None:
            raise RuntimeError("Cannot measure Neutron: the POD has no settings for OpenStack.")
        return {"pod": name, "config": network_config(model, model.cloud), "prune": ["networks", "subnets", "ports"]}

    def play(self, name: str, tasks: list[Json], python: str = sys.executable) -> list[str]:
        """Write a playbook. Return the command that runs its tasks on this host."""
        playbook = self.folder / f"{name}.yml"
        local = {"hosts": "localhost", "connection": "local", "gather_facts": False}
        playbook.write_text(json.dumps([{**local, "vars": {"ansible_python_interpreter": python}, "tasks": tasks}]))
        return [PLAYBOOK, "-i", "localhost,", str(playbook)]

    def run_own(
        self, name: str, options: Json, changed: bool, env: dict[str, str] | None = None
    ) -> tuple[Sample, list[str]]:
        """Run the module in a playbook. Return the sample, and the requests that Neutron received."""
        before = self._log.stat().st_size
        arguments = self.play(name, [{"openipu.pod.openstack_pod_network": options}])
        sample = command(arguments, expect=f"changed={int(changed)} ", env=env)
        with self._log.open() as stream:
            stream.seek(before)
            return sample, [line.split('"')[1] for line in stream if '"' in line]

    def log_in(self) -> None:
        """Request a token from Keystone."""
        auth = self.admin.config.auth
        user = {"name": auth["username"], "domain": {"id": auth["user_domain_id"]}, "password": auth["password"]}
        project = {"name": auth["project_name"], "domain": {"id": auth["project_domain_id"]}}
        body = {"identity": {"methods": ["password"], "password": {"user": user}}, "scope": {"project": project}}
        self.admin.session.post(f"{auth['auth_url']}/auth/tokens", json={"auth": body}, authenticated=False)

    def remove(self, pod: str) -> None:
        """Remove all objects with the tag of a POD."""
        command(self.play("remove", [{"openipu.pod.openstack_pod_network": {"pod": pod, "state": "absent"}}]))


def bench_ports(lab: NeutronLab, table: Table) -> None:
    """Measure 48 ports on existing networks."""
    options = lab.pod("ports", 1, "")
    config = options["config"]
    base = {name: config[name] for name in ("networks", "subnets")}
    lab.run_own("base", {"pod": "ports", "config": base}, changed=True)
    try:
        ids = {net.name: net.id for net in lab.admin.network.networks()}
        bodies = [
            {
                "name": port["name"],
                "network_id": ids[port["network"]],
                "mac_address": port["mac"],
                "fixed_ips": [{"ip_address": address} for address in port["addresses"]],
                "dns_name": port["dns_name"],
                "is_port_security_enabled": False,
            }
            for port in config["ports"]
        ]
        raw = min(_timed(lambda: list(lab.admin.network.create_ports(bodies)), lambda: _clear(lab, ids)) for _ in "12")
        ports_options = {"pod": "ports", "config": {"ports": config["ports"]}}
        first, _requests = lab.run_own("ports", ports_options, changed=True)
        second, requests = lab.run_own("ports", ports_options, changed=False)
        _clear(lab, ids)
        peer_first, peer_again = _peer(lab, config["ports"])
        _clear(lab, ids)
    finally:
        lab.remove("ports")
    count = len(bodies)
    looped = f"openstack.cloud.port looped: {peer_first.wall:.0f} s"
    table.add(f"{count} ports, first run", f"{first.wall:.1f} s", looped)
    bulk = f"one raw bulk POST: {raw:.1f} s"
    table.add("same, against a raw POST", f"{first.wall / raw:.2f} ×", bulk, Target("≤ 1.5 ×", 1.5), first.wall / raw)
    looped = f"openstack.cloud.port looped: {peer_again.wall:.0f} s"
    table.add(f"{count} ports, second run", f"{second.wall:.1f} s", looped, Target("≤ 3 s", 3), second.wall)
    table.add("same, write requests", str(_writes(requests)), "", Target("0", 0.5), _writes(requests))


def bench_pod(lab: NeutronLab, table: Table) -> None:
    """Measure the complete network of a POD64, also with three tenants, of four racks and of 16 racks."""
    external = lab.admin.network.create_network(
        name="bench-outside",
        provider_network_type="vlan",
        provider_physical_network="physnet1g",
        provider_segmentation_id=VLAN + 9,
        is_router_external=True,
    )
    lab.admin.network.create_subnet(
        name="bench-outside", network_id=external.id, ip_version=4, cidr="192.0.2.0/24", is_dhcp_enabled=False
    )
    project = lab.admin.identity.create_project(name="bench-tenant")
    samples: dict[int, tuple[Sample, Sample]] = {}
    try:
        for racks in (1, 4, 16):
            options = lab.pod(f"pod{racks}", racks, "bench-outside")
            try:
                first, _requests = lab.run_own("pod", options, changed=True)
                second, requests = lab.run_own("pod", options, changed=False)
            finally:
                lab.remove(f"pod{racks}")
            if _writes(requests):
                raise RuntimeError(f"Cannot measure the second run: it sent {_writes(requests)} write requests.")
            samples[racks] = (first, second)
        _bench_tenants(lab, table, ("tenant-a", "tenant-b", project.name))
    finally:
        lab.admin.network.delete_network(external)
        lab.admin.identity.delete_project(project)
    (first, second), (first4, second4), (first16, second16) = samples[1], samples[4], samples[16]
    table.add("network of a POD64, first run", f"{first.wall:.1f} s", "", Target("≤ 20 s", 20), first.wall)
    table.add("same, second run", f"{second.wall:.1f} s", "", Target("≤ 4 s", 4), second.wall)
    growth = first4.wall / first.wall / 4
    table.add("four racks, first run", f"{first4.wall:.1f} s", f"{growth:.2f} × per rack", Target("≤ 1 ×", 1), growth)
    growth = second4.wall / second.wall / 4
    table.add("four racks, second run", f"{second4.wall:.1f} s", f"{growth:.2f} × per rack", Target("≤ 1 ×", 1), growth)
    for name, run16, run4 in (("first", first16, first4), ("second", second16, second4)):
        growth = run16.wall / run4.wall
        target = Target("≤ 4.4 ×", 4.4)
        table.add(f"16 racks, {name} run", f"{run16.wall:.1f} s", f"{growth:.2f} × four racks", target, growth)


def _bench_tenants(lab: NeutronLab, table: Table, tenants: Sequence[str]) -> None:
    """Measure an unchanged POD64 with several tenants. The peer is an empty playbook and the same requests.

    In the first figure, both have a token. In the second one, both log in.
    """
    options = lab.pod("tenants", 1, "bench-outside", tenants)
    cached = cached_tokens.environment(lab.folder)
    try:
        lab.run_own("tenants", options, changed=True)
        _login, requests = lab.run_own("tenants", options, changed=False, env=cached)
        paths = [_path(request) for request in requests if request.startswith("GET ")]
        empty = lab.play("empty", [])
        found = alternate(
            7,
            {
                "own": lambda: lab.run_own("tenants", options, changed=False, env=cached)[0],
                "own with login": lambda: lab.run_own("tenants", options, changed=False)[0],
                "empty": lambda: command(empty),
                "requests": lambda: _wall(lambda: [lab.admin.network.get(path) for path in paths]),
                "login": lambda: _wall(lab.log_in),
            },
            {},
        )
    finally:
        lab.remove("tenants")
    walls = {name: sample.wall for name, sample in found.items()}
    peer = walls["empty"] + walls["requests"]
    text = f"empty playbook {walls['empty']:.2f} s, the same requests {walls['requests']:.2f} s"
    name = f"POD64 with {len(tenants)} tenants, unchanged, with a token"
    target = Target("≤ 1.5 ×", 1.5)
    table.add(name, f"{walls['own']:.2f} s, {walls['own'] / peer:.2f} ×", text, target, walls["own"] / peer)
    table.add("same, read requests", str(len(paths)), "", Target("≤ 15", 15), len(paths))
    table.add("same, write requests", str(_writes(requests)), "", Target("0", 0.5), _writes(requests))
    own, peer = walls["own with login"], peer + walls["login"]
    text += f", login {walls['login']:.2f} s"
    table.add("same, with a login", f"{own:.2f} s, {own / peer:.2f} ×", text, target, own / peer)


def _path(request: str) -> str:
    """Return the path of a request, relative to the endpoint of Neutron."""
    url = urlsplit(request.split()[1])
    return f"{url.path.partition('/v2.0')[2]}?{url.query}"


def _wall(call: Callable[[], object]) -> Sample:
    """Return the duration of a call."""
    return Sample(0.0, _timed(call, lambda: None))


def _writes(requests: Iterable[str]) -> int:
    return len([request for request in requests if not request.startswith("GET ")])


def _peer(lab: NeutronLab, ports: list[Json]) -> tuple[Sample, Sample]:
    """Create the same ports in a loop over ``openstack.cloud.port``. Return samples of the first and second run."""
    options = {
        "name": "{{ item.name }}",
        "network": "{{ item.network }}",
        "mac_address": "{{ item.mac }}",
        "fixed_ips": [{"ip_address": "{{ item.addresses[0] }}"}],
        "dns_name": "{{ item.dns_name }}",
        "port_security_enabled": False,
    }
    label = {"label": "{{ item.name }}"}
    task = {"openstack.cloud.port": options, "loop": ports, "loop_control": label}
    arguments = lab.play("peer", [task], str(PEER_PYTHON))
    environment = {"ANSIBLE_COLLECTIONS_PATH": str(PEERS)}
    first = command(arguments, expect="changed=1 ", env=environment)
    return first, command(arguments, expect="failed=0 ", env=environment)


def _timed(call: Callable[[], object], after: Callable[[], None]) -> float:
    start = time.perf_counter()
    call()
    duration = time.perf_counter() - start
    after()
    return duration


def _clear(lab: NeutronLab, networks: dict[str, str]) -> None:
    for name, id in networks.items():
        if name.startswith("ports-"):
            for port in lab.admin.network.ports(network_id=id):
                if not port.device_owner:
                    lab.admin.network.delete_port(port)


@contextmanager
def _neutron_lab() -> Iterator[NeutronLab]:
    state = CACHE / "cloud"
    running = state.exists()
    site = cloud.up(state)
    os.environ.update(OS_CLIENT_CONFIG_FILE=str(site.clouds), OS_CLOUD=ADMIN_CLOUD)
    try:
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            yield NeutronLab(site, Path(folder))
    finally:
        if not running:
            cloud.down(state)


@click.command()
def main() -> None:
    """Measure and print each figure with its peer. Fail when a figure misses its target."""
    os.environ["ANSIBLE_CONFIG"] = str(ROOT / "ansible.cfg")
    table = Table(f"Neutron, on {os.cpu_count()} processors, Python {platform.python_version()}")
    with _neutron_lab() as lab:
        bench_ports(lab, table)
        bench_pod(lab, table)
    click.echo(table.text())
    if table.missed:
        raise click.ClickException(f"Missed targets: {', '.join(table.missed)}.")


if __name__ == "__main__":
    main()
