# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Loading of pod.yml and machines.csv into a checked ``model.Pod``.

``load`` is the entry point of this package. ``spec`` declares the keys and columns, ``source`` parses the files, and
``model`` has the result. Errors are ``PodError`` with file and line, if known. Modules such as ``switch_config``,
``openstack_networks`` and ``firewall`` derive configuration from the model; they are pure.
"""

from __future__ import annotations

from . import cabling, controller, kubernetes_nodes, model, openstack_settings, spec, teams
from .clusters_and_partitions import ObjectLists
from .devices import Devices
from .mistakes import LeftOut, Mistakes, PodError
from .source import Block, read_yaml, relative_to

__all__ = ["PodError", "load"]


def load(pod_yml: str, machines_csv: str | None = None) -> model.Pod:
    """Read and check a POD.

    ``machines_csv`` replaces the file of the option ``machines`` in pod.yml. Raises PodError with all mistakes. Those
    that only follow from another one are not among them.
    """
    mistakes = Mistakes()
    top = spec.POD.read(read_yaml(pod_yml, mistakes), mistakes)
    path = machines_csv or (None if top["machines"] is None else relative_to(pod_yml, top["machines"]))
    return _Loader(top, path, mistakes).pod()


class _Loader:
    """Loader of one POD. Parts with mistakes are left out, so that the other parts are checked too."""

    def __init__(self, top: Block, machines_file: str | None, mistakes: Mistakes) -> None:
        """``machines_file`` is None if its name has a mistake."""
        self.top = top
        self.machines_file = machines_file
        self.mistakes = mistakes
        self.left_out = LeftOut()

    def pod(self) -> model.Pod:
        """Return the POD. Raises PodError."""
        devices = Devices(self.top, self.machines_file, self.mistakes, self.left_out)
        racks, networks = devices.racks, devices.plan.networks
        objects = ObjectLists(self.top, racks, self.mistakes, self.left_out)
        cloud = openstack_settings.read(self.top, devices.plan, objects, self.mistakes, self.left_out)
        cables = cabling.cables(devices, self.mistakes, self.left_out)
        hosts: tuple[str, ...] = ()
        port = 0
        with self.mistakes.collect():
            hosts, port = controller.read(self.top, racks, self.mistakes, self.left_out)
        kubernetes = kubernetes_nodes.read(self.top, racks, hosts, self.mistakes, self.left_out)
        found = teams.read(self.top, racks, cloud, self.mistakes, self.left_out)
        deploy = self._deploy(racks)
        self.mistakes.check()
        return model.Pod(
            name=self.top["name"],
            file=self.top.file,
            machines_file=self.machines_file or "",
            controller_hosts=hosts,
            controller_port=port,
            agent_port=self.top["agent_port"],
            networks=networks,
            racks=racks,
            cables=openstack_settings.tagged(cables, cloud, networks[model.DATA].vlan),
            clusters=tuple(objects.clusters.values()),
            allocations=tuple(objects.allocations.values()),
            partitions=objects.partitions,
            users=objects.users,
            cloud=cloud,
            kubernetes=kubernetes,
            deploy=deploy,
            teams=found,
        )

    def _deploy(self, racks: tuple[model.Rack, ...]) -> dict[str, tuple[str, ...]]:
        """Return the roles for hosts, by group of the inventory. Record groups of servers without any server."""
        block = spec.POD.child(self.top, "deploy", self.mistakes)
        found = {group: tuple(roles) for group, roles in block.items() if roles}
        given = {role for rack in racks for server in rack.servers for role in server.roles}
        for role, group in (("controller", "controllers"), ("poplar", "poplar_servers")):
            if group in found and role not in given:
                message = (
                    "deploy: no server has the role '%s', so '%s' applies to no host: add the role, or remove the key"
                )
                self.mistakes.add(block.error(message % (role, group), group).unless(self.left_out.servers))
        return found
