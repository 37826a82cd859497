# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Task of the module eos_pod_info: read the state of a switch and compare it with the POD model."""

from __future__ import annotations

from ..reconcile import Object
from ..runner import Task, TaskError
from .cabling import check, observe
from .options import EOS, Run

_COMMANDS = (
    "show version",
    "show hostname",
    "show interfaces status",
    "show lldp neighbors",
    "show mac address-table",
)
_REPORTED = 3  # findings that the error message names


def _eos_pod_info(run: Run) -> Object:
    cables = run.params["cables"]
    version, hostname, status, lldp, macs = run.transport.show_json(*_COMMANDS)
    found = check(cables or [], observe(status, lldp, macs))
    result: Object = {
        "changed": False,
        "switch": {
            "hostname": hostname.get("hostname"),
            "model": version.get("modelName"),
            "version": version.get("version"),
            "serial": version.get("serialNumber"),
            "mac": version.get("systemMacAddress"),
        },
        "interfaces": {
            name: {
                "status": item.get("linkStatus"),
                "description": item.get("description", ""),
                "bandwidth": item.get("bandwidth"),
                "vlan": item.get("vlanInformation", {}).get("vlanId"),
            }
            for name, item in status.get("interfaceStatuses", {}).items()
        },
        "neighbors": [
            {"port": row["port"], "device": row["neighborDevice"], "device_port": row["neighborPort"]}
            for row in lldp.get("lldpNeighbors", [])
        ],
        "macs": [
            {"mac": row["macAddress"], "vlan": row["vlanId"], "port": row["interface"]}
            for row in macs.get("unicastTable", {}).get("tableEntries", [])
        ],
        "findings": found,
        "ok": not found if cables is not None else None,
    }
    if found and run.params["fail_on_findings"]:
        more = " And %d more." % (len(found) - _REPORTED) if len(found) > _REPORTED else ""
        raise TaskError(" ".join(item["reason"] for item in found[:_REPORTED]) + more, findings=found)
    return result


EOS_POD_INFO = Task(
    EOS,
    {
        "host": {"type": "str", "required": True},
        "cables": {
            "type": "list",
            "elements": "dict",
            "options": {
                "device": {"type": "str", "required": True},
                "connector": {"type": "str", "required": True},
                "port": {"type": "str", "required": True},
                "macs": {"type": "list", "elements": "str"},
                "vlans": {"type": "list", "elements": "int"},
            },
        },
        "fail_on_findings": {"type": "bool", "default": False},
    },
    _eos_pod_info,
    {"required_together": [("client_cert", "client_key")]},
)
