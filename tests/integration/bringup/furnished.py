# SPDX-License-Identifier: GPL-3.0-or-later
"""A rack twin with its switches and PDUs in this process, on addresses of its own."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pyeapi
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.openipu.pod.plugins.module_utils.eos.infos import EOS_POD_INFO
from ansible_collections.openipu.pod.plugins.module_utils.eos.tasks import EOS_POD
from ansible_collections.openipu.pod.plugins.module_utils.pdu.infos import PDU_INFO
from ansible_collections.openipu.pod.plugins.module_utils.pdu.tasks import PDU_TASK
from ansible_collections.openipu.pod.plugins.module_utils.pod import model
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import load
from ansible_collections.openipu.pod.plugins.module_utils.runner import Task
from own_twin import BIN, run

from openipu.twin import logins, racked
from openipu.twin.generate import Shape
from openipu.twin.rack import Rack
from openipu.twin.rack import load as load_rack

Result = TypeVar("Result")
MACHINES = 4


class Furnished:
    """A rack of four machines, two switches and two PDUs; whatever touches it is done in its event loop."""

    def __init__(self, folder: Path, pdu_model: str) -> None:
        offset = 7 + os.getpid() % 23 * 10
        shape = Shape(machines=MACHINES, devices=True, offset=offset)
        path = shape.write(folder / "pod", str(folder))
        path.write_text(path.read_text().replace("- name: pdu", f"- model: {pdu_model}\n    name: pdu"))
        self.pod: model.Pod = load(path)
        self.folder = folder
        self._config = folder / "rack.json"
        self._config.write_text(json.dumps(racked.rack(self.pod)))
        listed = run(BIN / "ansible-inventory", "-i", path, "--list").stdout
        self.hosts: dict[str, dict[str, Any]] = json.loads(
            listed, object_hook=lambda found: found.get("__ansible_unsafe", found)
        )["_meta"]["hostvars"]
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.rack = self.boot()

    def boot(self) -> Rack:
        """A rack that reads its folder anew, and runs."""

        async def started() -> Rack:
            rack = load_rack(self._config)
            await rack.start()
            return rack

        self.rack = self.run(started())
        return self.rack

    def close(self) -> None:
        self.run(self.rack.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    def get(self, function: Callable[[], Result]) -> Result:
        async def call() -> Result:
            return function()

        return self.run(call())

    def fault(self, line: str) -> None:
        self.run(self.rack.faults.do(line))

    def wrong(self) -> list[str]:
        return self.get(lambda: [each.sentence for each in self.rack.faults.wrong()])

    def address(self, device: str) -> str:
        return next(each for each in self.pod.devices if each.name == device).addresses["management"]

    def node(self, switch: str) -> Any:
        """pyeapi's node of a switch, whose certificate is verified."""
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
        """What the switch finds in a wrong port."""
        variables = self.hosts[switch]
        found = perform(
            EOS_POD_INFO,
            **variables["eos_connection"],
            host=variables["ansible_host"],
            cables=variables["pod_cables"],
        )
        return [finding["reason"] for finding in found["findings"]]

    def configure(self, switch: str) -> bool:
        """Bring a switch to what the POD says; whether it changed."""
        variables = self.hosts[switch]
        config = variables["pod_switch_config"]
        changed: bool = perform(EOS_POD, **variables["eos_connection"], host=variables["ansible_host"], config=config)[
            "changed"
        ]
        return changed

    def pdu(self, name: str, **config: Any) -> dict[str, Any]:
        """What `pdu` answers."""
        return perform(PDU_TASK, host=self.address(name), config=config, **self.hosts[name]["pdu_connection"])

    def load(self, name: str) -> float:
        """The power that a PDU measures, in watts."""
        found = perform(PDU_INFO, host=self.address(name), **self.hosts[name]["pdu_connection"])
        watts: float = 1000 * found["device"]["power"]
        return watts


def perform(task: Task[Any], **options: Any) -> dict[str, Any]:
    """The result of a task that succeeds."""
    checked = ArgumentSpecValidator(task.argument_spec).validate(options)
    assert not checked.error_messages, checked.error_messages
    result = task.perform(checked.validated_parameters, check_mode=False, diff=False)
    assert not result.get("failed"), result["msg"]
    return result
