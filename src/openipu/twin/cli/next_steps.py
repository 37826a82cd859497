# SPDX-License-Identifier: GPL-3.0-or-later
"""Next steps after a fault: the commands that find it and undo it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from openipu.shared.vipu.client import Client, Connection, VipuError
from openipu.shared.vipu.contract import admin
from openipu.shared.vipu.ports import CONTROLLER_PORT
from openipu.twin.launch import hints
from openipu.twin.launch.errors import TwinError
from openipu.twin.launch.launcher import Twin
from openipu.twin.rack import fault_lines

_CABLES = ("unplug", "move", "swap")
# Options of "test cluster" that find faults of machines. Faults without a test show in the status. Without an option,
# a cluster with partitions skips tests; a single test always runs.
_TESTS = {
    **dict.fromkeys(_CABLES, ("--cabling",)),
    "break": ("--ipulink",),
    "errors": ("--traffic",),
    "version": ("--versions",),
    "versions": ("--versions",),
    "pfc": ("--pfc-settings",),
}
_REMOVALS = ("heal", "plug", "start")  # verbs that undo faults


def after(twin: Twin, words: Sequence[str]) -> list[str]:
    """Return the lines that follow a fault; none after the removal of faults. ``words`` are those of a valid fault."""
    if words[0] in _REMOVALS:
        return []
    targets = list(dict.fromkeys(fault_lines.targets(words)))
    found = [f"Find it:  {_find(twin, words, targets)}"]
    if reverse := reversal(words):
        return [*found, f"Undo it:  {twin.command('fault', *reverse)}"]
    return [*found, f"Undo it:  {twin.command('heal', *targets)}", f"This removes all faults of {', '.join(targets)}."]


def reversal(words: Sequence[str]) -> list[str]:
    """Return the fault that undoes another one, and nothing else; empty if only ``heal`` undoes it."""
    match words:
        case ["unplug", port]:
            return ["plug", port]
        case ["move", port, to]:
            return ["move", to, port]
        case ["swap", port, other]:
            return ["swap", port, other]
        case ["stop", *names]:
            return ["start", *names]
    return []


def options(connection: Connection) -> str:
    """Return the options with which ``vipu`` and ``vipu-admin`` reach the controller of a twin."""
    port = "" if connection.port == CONTROLLER_PORT else f" --api-port {connection.port}"
    return f"--api-host {connection.host}{port}"


def _find(twin: Twin, words: Sequence[str], targets: Collection[str]) -> str:
    verb = words[0]
    rack = twin.configuration()
    devices = rack.get("devices", {})
    identity = twin.identity()
    if identity and any(each["name"] in targets for kind in ("switches", "pdus") for each in devices.get(kind, ())):
        return hints.playbook(twin.folder, identity.inventory, "cabling" if verb in _CABLES else "site")
    if verb in _TESTS:
        agents = {rack.get("names", {}).get(name, name) for name in targets}
        try:
            with twin.client() as client:
                if cluster := _cluster(client, agents):
                    program = f"{hints.program('vipu-admin')} {options(client.connection)}"
                    return " ".join([program, "test cluster", cluster, *cluster_test(words)])
        except (TwinError, VipuError):  # the rack runs without a controller
            pass
    return twin.command("status")


def cluster_test(words: Sequence[str]) -> Sequence[str]:
    """Return the option of the test that finds a fault of a machine."""
    if any(":sync" in word for word in words):
        return ("--sync",)
    if words[0] == "break" and ":gw" in words[1]:
        return ("--gwlink",)
    return _TESTS[words[0]]


def _cluster(client: Client, agents: Collection[str]) -> str:
    """Return the id of the first cluster with one of these agents; empty if no cluster has one."""
    clusters = client.call(client.admin.ListClusters, admin.ListClustersRequest(), "list clusters").clusters
    return next((each.spec.id for each in clusters if set(each.spec.agent_ids) & set(agents)), "")
