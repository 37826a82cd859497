# SPDX-License-Identifier: GPL-3.0-or-later
"""Inventory of a rehearsal: the files of a user with loopback addresses and with the credentials of the twin."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from openipu.pod_files.rehearsal.translation import Translator
from openipu.pod_files.variables import Variables
from openipu.shared.pod import model, spec
from openipu.shared.pod.source import read_yaml
from openipu.twin.devices import logins
from openipu.twin.devices.eos.ports import MODELS as SWITCHES
from openipu.twin.devices.pdu.models import MODELS as PDUS
from openipu.twin.launch.hints import REHEARSAL_VARIABLES

# Keys of pod.yml that configure systems which the twin does not have.
LEFT_OUT = {"deploy": "roles on hosts", "kubernetes": "Kubernetes"}
VARIABLES = REHEARSAL_VARIABLES  # file beside the translated pod.yml with the variables that override those of the user
DRAWING = "rack-report.html"
ENCRYPTED = "rehearsal_encrypted"  # variable of the hosts to which an encrypted file applies
_ORIGIN = "rehearsal_pod"  # variable with file and name of the rehearsed POD
_INLINE = re.compile(r"!vault\s*\|[-+]?\s*\n(?:[ \t]+\S[^\n]*(?:\n|$))+")
_PLACEHOLDER = "rehearsal"  # value of all secrets
_INTERFACES = {"bmc": "bmc_address", "gw": "gw_address", "rnic": "rnic_address"}


def unsupported(pod: model.Pod) -> dict[str, str]:
    """Return the models of switches and PDUs that the twin does not have, by name of the device."""
    found = {
        switch.name: switch.model for rack in pod.racks for switch in rack.switches if switch.model not in SWITCHES
    }
    return found | {pdu.name: pdu.model for rack in pod.racks for pdu in rack.pdus if pdu.model not in PDUS}


@dataclass(frozen=True)
class TranslatedPod:
    """Writer of the files of a POD with loopback addresses, see ``launcher.PodWriter``."""

    pod: model.Pod
    variables: Variables
    translator: Translator

    def write(self, folder: Path, state: str) -> Path:
        """Write the files into a folder, which is replaced, and return the path of pod.yml. Raises OSError."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        texts = dict.fromkeys(self.variables.encrypted, json.dumps({ENCRYPTED: True}))
        for path, text in self.variables.files.items():
            texts[path] = self.translator.text(_INLINE.sub(f'"{_PLACEHOLDER}"\n', text))
        for path, text in texts.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        (folder / "machines.csv").write_text(_machines(self.pod, self.translator))
        path = folder / "pod.yml"
        path.write_text(yaml.safe_dump(_pod(self.pod, self.translator), sort_keys=False, allow_unicode=True))
        self.write_extra_variables(folder, state)
        return path

    def write_extra_variables(self, folder: Path, state: str) -> None:
        """Write the file with the variables that override those of the user. Raises OSError."""
        extra = extra_variables(self.pod, self.variables, self.translator, Path(state)) | {_ORIGIN: origin(self.pod)}
        with (folder / VARIABLES).open("w") as file:
            json.dump(extra, file, indent=1)


def origin(pod: model.Pod) -> dict[str, str]:
    """Return file and name of a POD, which identify its rehearsal."""
    return {"file": str(Path(pod.file).resolve()), "name": pod.name}


def read_origin(folder: Path) -> dict[str, str] | None:
    """Return the ``origin`` of the POD whose translated files are in a folder; None if there are no such files."""
    try:
        found: dict[str, str] | None = json.loads((folder / VARIABLES).read_text()).get(_ORIGIN)
    except (OSError, ValueError, AttributeError):
        return None
    return found


def extra_variables(pod: model.Pod, variables: Variables, translator: Translator, state: Path) -> dict[str, Any]:
    """Return the variables that override those of the user: connections to the twin, and placeholders of secrets.

    ``state`` is the state folder of the twin.
    """
    hosts = ",".join(translator.host(host) for host in pod.controller_hosts)
    connection = {"api_host": hosts, "api_port": pod.controller_port}
    found: dict[str, Any] = dict.fromkeys((*variables.undefined, *variables.unneeded), _PLACEHOLDER)
    for group in logins.group_vars(str(state)).values():
        found |= group
    return found | {
        "ansible_become": False,  # nothing needs root on this host, and sudo does not work in a user namespace
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
        "vipu_python": sys.executable,
        "vipu_connection": connection,
        "vipu_partition_connection": connection,
        "vipu_users_folder": str(state / "pod" / "users"),
        "pod_check_agents": True,
        "pod_report_dest": str(state / "pod" / DRAWING),
    }


def _machines(pod: model.Pod, translator: Translator) -> str:
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    columns = ("name", "rack", "unit", *(f"{name}_mac" for name in _INTERFACES), *_INTERFACES.values())
    writer.writerow([*columns, "rack_unit", "serial", "agent"])
    for machine in pod.machines:
        macs = [machine.macs.get(name, "") for name in _INTERFACES]
        addresses = [
            translator.host(machine.addresses[name]) if name in machine.addresses else "" for name in _INTERFACES
        ]
        more = [machine.rack_unit, machine.serial, machine.agent]
        writer.writerow([machine.name, machine.rack, machine.unit, *macs, *addresses, *more])
    return table.getvalue()


def _pod(pod: model.Pod, translator: Translator) -> dict[str, Any]:
    """Return the content of pod.yml, in which all addresses are explicit."""
    unchanged = {"plugin", *(key for key in spec.INVENTORY_KEYS if not key.startswith("cache"))}
    content: dict[str, Any] = {}
    for key, value in read_yaml(pod.file).items():
        if key in LEFT_OUT or key == "cache" or (key.startswith("cache_") and key in spec.INVENTORY_KEYS):
            continue
        content[key] = _plain(value, str if key in unchanged else translator.text)
    content["machines"] = "machines.csv"
    # The controller of the twin listens on the first host only.
    content["controller"] = {
        "host": [translator.host(host) for host in pod.controller_hosts],
        "port": pod.controller_port,
    }
    content["networks"] = {
        network.name: {
            "vlan": network.vlan,
            **({"subnet": translator.subnet(network.subnet)} if network.subnet else {}),
        }
        for network in pod.networks.values()
    }
    devices = {device.name: device for device in pod.devices}
    missing = unsupported(pod)
    for rack in content["racks"]:
        for server in rack.get("servers") or ():
            server["addresses"] = {
                name: translator.host(address) for name, address in devices[str(server["name"])].addresses.items()
            }
        for device in (*(rack.get("switches") or ()), *(rack.get("pdus") or ())):
            name = str(device["name"])
            if "management" in devices[name].addresses:
                device["address"] = translator.host(devices[name].addresses["management"])
            if name in missing:
                device["managed"] = False
    return content


def _plain(value: Any, text: Any) -> Any:
    """Return a value of pod.yml as plain data, with a function applied to all texts."""
    if isinstance(value, dict):
        return {key: _plain(item, text) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, text) for item in value]
    return text(value) if isinstance(value, str) else value
