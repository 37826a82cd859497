# SPDX-License-Identifier: GPL-3.0-or-later
"""Twin of switches and PDUs in a separate process, and plays on all of them."""

from __future__ import annotations

import itertools
import json
import os
import ssl
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyeapi

from openipu.process.limits import raise_file_limit
from openipu.shared.pod import model
from openipu.shared.pod.load import load
from openipu.shared.pod.switch_config import switch_config
from openipu.twin.devices import logins
from openipu.twin.devices.eos.config.startup import startup_config
from openipu.twin.launch import rack_config
from openipu.twin.launch.generate import PodSize
from tests import ROOT

from .collection import ENVIRONMENT, PLAYBOOK
from .lab import Processes, own_octet
from .measure import Sample, command

PEERS = Path(os.environ.get("OPENIPU_PEERS", ROOT / ".cache/peers"))
Json = dict[str, Any]


class SwitchLab(Processes):
    """Context manager for the devices of a POD. ``racks`` 0 is the POD64 of the example inventory."""

    def __init__(self, racks: int = 0) -> None:
        super().__init__()
        self._racks = racks
        self._sessions = itertools.count()  # names of sessions cannot be reused

    def __enter__(self) -> SwitchLab:
        """Start the devices. Raises RuntimeError with a log."""
        raise_file_limit()  # inherited by the process
        with self._stack:
            self._open_folder()
            self._pod: model.Pod = load(str(self._write_pod()))
            devices = [(rack, device) for rack in self._pod.racks for device in (*rack.switches, *rack.pdus)]
            self.switches = [device for _, device in devices if isinstance(device, model.Switch)]
            self.pdus = [device for _, device in devices if isinstance(device, model.Pdu)]
            self._start_rack(rack_config.rack(self._pod))
            self._context = ssl.create_default_context(cafile=str(self.folder / logins.CA))
            self._stack = self._stack.pop_all()
        return self

    def address(self, device: model.Device) -> str:
        """Return the management address of a device."""
        return str(device.addresses["management"])

    def clear(self) -> None:
        """Reset the running and startup configuration of all switches."""
        for switch in self.switches:
            bare = startup_config(switch.name, self._own_address(switch)).splitlines()
            begin, end = f"configure session bench{next(self._sessions)}", ["commit", "write memory"]
            self._node(switch).run_commands([begin, "rollback clean-config", *bare, *end], encoding="text")

    def running(self) -> dict[str, list[str]]:
        """Return the running configuration of each switch, as printed."""
        return {switch.name: self._show(switch, "running-config") for switch in self.switches}

    def startup(self) -> dict[str, list[str]]:
        """Return the startup configuration of each switch, as printed."""
        return {switch.name: self._show(switch, "startup-config") for switch in self.switches}

    def desired_config(self, switch: model.Switch) -> Json:
        """Return the option ``config`` of ``eos_pod`` for a switch."""
        config: Json = switch_config(self._pod, switch)
        return config

    def play(self, name: str, hosts: dict[str, Json], tasks: list[Json], **play: Any) -> list[str]:
        """Write an inventory with host variables, and a playbook. Return the command that runs it."""
        inventory, playbook = self.folder / f"{name}.inventory.json", self.folder / f"{name}.yml"
        inventory.write_text(json.dumps({"all": {"hosts": hosts}}))
        local = {"connection": "local", "vars": {"ansible_python_interpreter": sys.executable}}
        playbook.write_text(json.dumps([{"hosts": "all", "gather_facts": False, **local, **play, "tasks": tasks}]))
        return [PLAYBOOK, "-i", str(inventory), str(playbook)]

    def peer_play(self, name: str, hosts: dict[str, Json], tasks: list[Json]) -> list[str]:
        """Write a play for ``arista.eos`` with a persistent connection per switch. Return the command that runs it."""
        connection = {
            "ansible_connection": "ansible.netcommon.httpapi",
            "ansible_network_os": "arista.eos.eos",
            "ansible_user": logins.USER,
            "ansible_password": logins.PASSWORD,
            "ansible_become": True,
            "ansible_become_method": "enable",
            "ansible_httpapi_port": logins.EAPI_PORT,
            "ansible_httpapi_use_ssl": True,
            "ansible_httpapi_validate_certs": True,
            "ansible_httpapi_ca_path": str(self.folder / logins.CA),
            "ansible_python_interpreter": sys.executable,
        }
        end = {"ansible.builtin.meta": "reset_connection"}
        return self.play(name, hosts, [*tasks, end], connection="ansible.netcommon.httpapi", vars=connection)

    def connection(self, switch: model.Switch) -> Json:
        """Return the connection options of the modules for a switch."""
        return {
            "host": self.address(switch),
            "port": logins.EAPI_PORT,
            "username": logins.USER,
            "password": logins.PASSWORD,
            "ca_path": str(self.folder / logins.CA),
        }

    def pdu_connection(self, pdu: model.Pdu) -> Json:
        """Return the connection options of the modules for a PDU."""
        login = {"username": logins.USER, "auth_key": logins.AUTH_KEY, "priv_key": logins.PRIV_KEY}
        return {"host": self.address(pdu), "port": logins.SNMP_PORT, **login}

    def _write_pod(self) -> Path:
        folder = self.folder / "pod"
        if self._racks:
            return PodSize(racks=self._racks, devices=True, offset=own_octet()).write(folder, str(self.folder))
        folder.mkdir()
        example = ROOT / "inventory/pod64"
        (folder / "machines.csv").write_text((example / "machines.csv").read_text())
        pod_file = folder / "pod.yml"
        # The same addresses on loopback.
        pod_file.write_text((example / "pod.yml").read_text().replace(" 10.1.", f" 127.{own_octet()}."))
        return pod_file

    def _own_address(self, switch: model.Switch) -> str:
        return f"{self.address(switch)}/{self._pod.networks[model.MANAGEMENT].subnet.partition('/')[2]}"

    def _node(self, switch: model.Switch) -> Any:
        endpoint = {"transport": "https", "host": self.address(switch), "port": logins.EAPI_PORT}
        login = {"username": logins.USER, "password": logins.PASSWORD}
        return pyeapi.connect(**endpoint, **login, context=self._context, timeout=60, return_node=True)

    def _show(self, switch: model.Switch, which: str) -> list[str]:
        text = self._node(switch).enable(f"show {which}", encoding="text")[0]["result"]["output"]
        return [line for line in text.splitlines() if line.strip() and not line.startswith("!")]


def run_own(arguments: list[str], changed: bool | None = None) -> Sample:
    """Run a play of this collection. ``changed``: its task must change all hosts, or none; None: either is accepted."""
    if changed is None:
        return command(arguments, env=ENVIRONMENT)
    return command(arguments, f"changed={changed:d}", ENVIRONMENT, forbid=f"changed={not changed:d}")


@contextmanager
def _sockets(folder: Path) -> Iterator[Path]:
    """Folder for the sockets of one run, so that the next run uses no connection of it."""
    sockets = folder / "pc"
    sockets.mkdir()
    try:
        yield sockets
    finally:
        for path in sockets.iterdir():
            path.unlink()
        sockets.rmdir()


def run_peer(folder: Path, arguments: list[str]) -> Sample:
    """Run a play of ``arista.eos``. The sample excludes the CPU of its connection processes."""
    if not (PEERS / "ansible_collections/arista/eos").is_dir():
        raise RuntimeError(f"Cannot run the peer: {PEERS} has no arista.eos. Install it with 'make bench'.")
    with _sockets(folder) as sockets:
        environment = {
            **ENVIRONMENT,
            "ANSIBLE_COLLECTIONS_PATH": f"{PEERS}:{sysconfig.get_path('purelib')}",
            "ANSIBLE_PERSISTENT_CONTROL_PATH_DIR": str(sockets),
            "ANSIBLE_HOME": str(folder / "ansible"),
        }
        return command(arguments, env=environment, forbid="changed=0")
