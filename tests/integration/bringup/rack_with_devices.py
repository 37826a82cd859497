# SPDX-License-Identifier: GPL-3.0-or-later
"""A rack twin with its switches and PDUs in this process, on separate addresses."""

from __future__ import annotations

import json
import ssl
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pyeapi
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from openipu.shared.eos.info_task import EOS_POD_INFO
from openipu.shared.eos.task import EOS_POD
from openipu.shared.pdu.info_task import PDU_INFO
from openipu.shared.pdu.task import PDU_TASK
from openipu.shared.pod import model
from openipu.shared.pod.load import load
from openipu.shared.runner import Task
from openipu.twin.devices import logins
from openipu.twin.launch import rack_config
from openipu.twin.launch.generate import PodSize
from openipu.twin.rack.config_file import load as load_rack
from openipu.twin.rack.rack import Rack
from tests.event_loop import LoopThread
from tests.integration.bringup.own_twin import BIN, octet, run

Result = TypeVar("Result")
MACHINES = 4


def write_pod(folder: Path, pdu_model: str) -> Path:
    """Write a POD whose twin has this state folder. Return the path of pod.yml."""
    size = PodSize(machines=MACHINES, devices=True, offset=octet(7))
    path = size.write(folder / "pod", str(folder))
    path.write_text(path.read_text().replace("- name: pdu", f"- model: {pdu_model}\n    name: pdu"))
    return path


@cache
def inventory(pdu_model: str) -> tuple[str, str]:
    """Return a folder, and the inventory of a POD in it as JSON. In other folders only the paths differ."""
    with tempfile.TemporaryDirectory() as folder:
        return folder, run(BIN / "ansible-inventory", "-i", write_pod(Path(folder), pdu_model), "--list").stdout


class RackWithDevices:
    """A rack of four machines, two switches and two PDUs; all access to it runs in its event loop."""

    def __init__(self, folder: Path, pdu_model: str) -> None:
        path = write_pod(folder, pdu_model)
        self.pod: model.Pod = load(path)
        self.folder = folder
        self._config = folder / "rack.json"
        self._config.write_text(json.dumps(rack_config.rack(self.pod)))
        other, listed = inventory(pdu_model)
        listed = listed.replace(other, str(folder))
        self.hosts: dict[str, dict[str, Any]] = json.loads(
            listed, object_hook=lambda found: found.get("__ansible_unsafe", found)
        )["_meta"]["hostvars"]
        self._loop = LoopThread()
        self.run, self.get = self._loop.run, self._loop.call
        self.rack = self.boot()

    def boot(self) -> Rack:
        """Load the rack again from its folder, and start it."""

        async def started() -> Rack:
            rack = load_rack(self._config)
            await rack.start()
            return rack

        self.rack = self.run(started())
        return self.rack

    def close(self) -> None:
        self.run(self.rack.stop())
        self._loop.stop()

    def fault(self, line: str) -> None:
        self.run(self.rack.faults.apply(line))

    def defects(self) -> list[str]:
        return self.get(lambda: [each.message for each in self.rack.faults.defects()])

    def address(self, device: str) -> str:
        return next(each for each in self.pod.devices if each.name == device).addresses["management"]

    def node(self, switch: str) -> Any:
        """Return pyeapi's node of a switch, with verification of its certificate."""
        return pyeapi.connect(
            transport="https",
            host=self.address(switch),
            port=logins.EAPI_PORT,
            username=logins.USER,
            password=logins.PASSWORD,
            context=ssl.create_default_context(cafile=str(self.folder / logins.CA)),
            timeout=20,
            return_node=True,
        )

    def cabling(self, switch: str) -> list[str]:
        """Return the misplaced cables that a switch detects."""
        variables = self.hosts[switch]
        found = perform(
            EOS_POD_INFO,
            **variables["eos_connection"],
            host=variables["ansible_host"],
            cables=variables["pod_cables"],
        )
        return [finding["reason"] for finding in found["findings"]]

    def configure(self, switch: str) -> bool:
        """Apply the configuration of the POD to a switch; return whether it changed."""
        variables = self.hosts[switch]
        config = variables["pod_switch_config"]
        changed: bool = perform(EOS_POD, **variables["eos_connection"], host=variables["ansible_host"], config=config)[
            "changed"
        ]
        return changed

    def pdu(self, name: str, **config: Any) -> dict[str, Any]:
        """Run the module `pdu` and return its result."""
        return perform(PDU_TASK, host=self.address(name), config=config, **self.hosts[name]["pdu_connection"])

    def load(self, name: str) -> float:
        """Return the power that a PDU measures, in W."""
        found = perform(PDU_INFO, host=self.address(name), **self.hosts[name]["pdu_connection"])
        watts: float = 1000 * found["device"]["power"]
        return watts


def perform(task: Task[Any], **options: Any) -> dict[str, Any]:
    """Run a task that must succeed, and return its result."""
    checked = ArgumentSpecValidator(task.argument_spec).validate(options)
    assert not checked.error_messages, checked.error_messages
    result = task.perform(checked.validated_parameters, check_mode=False, diff=False)
    assert not result.get("failed"), result["msg"]
    return result
