# SPDX-License-Identifier: GPL-3.0-or-later
"""Racks with switches and PDUs in a process of their own, and plays on all of them."""

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
from ansible_collections.openipu.pod.plugins.module_utils.pod import model
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import load
from ansible_collections.openipu.pod.plugins.module_utils.pod.switching import switch_config

from openipu.limits import raise_file_limit
from openipu.twin import logins, racked
from openipu.twin.eos.startup import startup_config
from openipu.twin.generate import Shape

from .collection import ENVIRONMENT, PLAYBOOK
from .lab import Processes, own_octet
from .measure import Sample, command

ROOT = Path(__file__).parents[2]
PEERS = Path(os.environ.get("OPENIPU_PEERS", ROOT / ".cache/peers"))
Json = dict[str, Any]


class SwitchLab(Processes):
    """The devices of a POD; a context manager. ``racks`` 0 is the POD64 of the example inventory."""

    def __init__(self, racks: int = 0) -> None:
        """Nothing is started yet."""
        super().__init__()
        self._racks = racks
        self._sessions = itertools.count()  # a name is taken for good

    def __enter__(self) -> SwitchLab:
        """Start it all; raises RuntimeError with what it said."""
        raise_file_limit()  # inherited by the process
        with self._stack:
            self._open_folder()
            self._pod: model.Pod = load(str(self._described()))
            devices = [(rack, device) for rack in self._pod.racks for device in (*rack.switches, *rack.pdus)]
            self.switches = [device for _, device in devices if isinstance(device, model.Switch)]
            self.pdus = [device for _, device in devices if isinstance(device, model.Pdu)]
            self._start_rack(racked.rack(self._pod))
            self._context = ssl.create_default_context(cafile=str(self.folder / logins.CA))
            self._stack = self._stack.pop_all()
        return self

    def address(self, device: model.Device) -> str:
        """Where a device answers."""
        return str(device.addresses["management"])

    def clear(self) -> None:
        """Make every switch as new, running and startup configuration."""
        for switch in self.switches:
            bare = startup_config(switch.name, self._own_address(switch)).splitlines()
            begin, end = f"configure session bench{next(self._sessions)}", ["commit", "write memory"]
            self._node(switch).run_commands([begin, "rollback clean-config", *bare, *end], encoding="text")

    def running(self) -> dict[str, list[str]]:
        """The running configuration of every switch, as it prints it."""
        return {switch.name: self._shown(switch, "running-config") for switch in self.switches}

    def saved(self) -> dict[str, list[str]]:
        """The startup configuration of every switch, likewise."""
        return {switch.name: self._shown(switch, "startup-config") for switch in self.switches}

    def wanted(self, switch: model.Switch) -> Json:
        """What ``eos_pod`` is told of a switch."""
        config: Json = switch_config(self._pod, switch)
        return config

    def play(self, name: str, hosts: dict[str, Json], tasks: list[Json], **play: Any) -> list[str]:
        """Write an inventory with variables of hosts, and a playbook; the command that runs it."""
        inventory, playbook = self.folder / f"{name}.inventory.json", self.folder / f"{name}.yml"
        inventory.write_text(json.dumps({"all": {"hosts": hosts}}))
        local = {"connection": "local", "vars": {"ansible_python_interpreter": sys.executable}}
        playbook.write_text(json.dumps([{"hosts": "all", "gather_facts": False, **local, **play, "tasks": tasks}]))
        # Ansible's own plugin for YAML, and no other is asked whether it can read the file.
        return [PLAYBOOK, "-i", str(inventory), str(playbook)]

    def peer_play(self, name: str, hosts: dict[str, Json], tasks: list[Json]) -> list[str]:
        """The same for ``arista.eos``, with one kept connection per switch that ends with the play."""
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
        """How our modules reach a switch."""
        return {
            "host": self.address(switch),
            "port": logins.EAPI_PORT,
            "username": logins.USER,
            "password": logins.PASSWORD,
            "ca_path": str(self.folder / logins.CA),
        }

    def pdu_connection(self, pdu: model.Pdu) -> Json:
        """How they reach a PDU."""
        login = {"username": logins.USER, "auth_key": logins.AUTH_KEY, "priv_key": logins.PRIV_KEY}
        return {"host": self.address(pdu), "port": logins.SNMP_PORT, **login}

    def _described(self) -> Path:
        folder = self.folder / "pod"
        if self._racks:
            return Shape(racks=self._racks, devices=True, offset=own_octet()).write(folder, str(self.folder))
        folder.mkdir()
        example = ROOT / "inventory/pod64"
        (folder / "machines.csv").write_text((example / "machines.csv").read_text())
        described = folder / "pod.yml"
        # The same addresses on loopback.
        described.write_text((example / "pod.yml").read_text().replace(" 10.1.", f" 127.{own_octet()}."))
        return described

    def _own_address(self, switch: model.Switch) -> str:
        return f"{self.address(switch)}/{self._pod.networks[model.MANAGEMENT].subnet.partition('/')[2]}"

    def _node(self, switch: model.Switch) -> Any:
        where = {"transport": "https", "host": self.address(switch), "port": logins.EAPI_PORT}
        login = {"username": logins.USER, "password": logins.PASSWORD}
        return pyeapi.connect(**where, **login, context=self._context, timeout=60, return_node=True)

    def _shown(self, switch: model.Switch, which: str) -> list[str]:
        text = self._node(switch).enable(f"show {which}", encoding="text")[0]["result"]["output"]
        return [line for line in text.splitlines() if line.strip() and not line.startswith("!")]


def ours(arguments: list[str], changed: bool | None = None) -> Sample:
    """Run a play of ours, whose one task changes all hosts, none of them, or nobody knows which."""
    if changed is None:
        return command(arguments, env=ENVIRONMENT)
    return command(arguments, f"changed={changed:d}", ENVIRONMENT, refuse=f"changed={not changed:d}")


@contextmanager
def _sockets(folder: Path) -> Iterator[Path]:
    """A folder for the sockets of one run: the next one is to find no connection of it."""
    sockets = folder / "pc"
    sockets.mkdir()
    try:
        yield sockets
    finally:
        for left in sockets.iterdir():
            left.unlink()
        sockets.rmdir()


def theirs(folder: Path, arguments: list[str]) -> Sample:
    """Run a play of ``arista.eos``. The CPU of its connections, processes on their own, is not in it."""
    if not (PEERS / "ansible_collections/arista/eos").is_dir():
        raise RuntimeError(f"there is no arista.eos in {PEERS}: 'make bench' fetches it")
    with _sockets(folder) as sockets:
        environment = {
            **ENVIRONMENT,
            "ANSIBLE_COLLECTIONS_PATH": f"{PEERS}:{sysconfig.get_path('purelib')}",
            "ANSIBLE_PERSISTENT_CONTROL_PATH_DIR": str(sockets),
            "ANSIBLE_HOME": str(folder / "ansible"),
        }
        return command(arguments, env=environment, refuse="changed=0")
