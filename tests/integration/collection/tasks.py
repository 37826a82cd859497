# SPDX-License-Identifier: GPL-3.0-or-later
"""Tasks with modules of the controller, for playbooks and for direct calls."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from tests.integration.vipu_servers import InProcess

AGENTS = [{"id": f"ag{n:02}", "host": f"127.0.9.{n}"} for n in range(1, 3)]
NAMES = [agent["id"] for agent in AGENTS]
CLUSTER = {"id": "cl0", "agents": NAMES, "topology": "torus"}
ALLOCATION = {"id": "team-a", "cluster": "cl0", "size": 2}
VISION = {"id": "vision", "allocation": "team-a", "size": 4, "reconfigurable": True}
NOTEBOOK = {"id": "notebook", "allocation": "team-a", "size": 1}

Perform = Callable[..., dict[str, Any]]


def task(module: str, **options: Any) -> dict[str, Any]:
    """Return a task of a playbook."""
    return {"name": module, f"openipu.pod.{module}": options}


def performer(server: InProcess) -> Perform:
    """Perform a task at the controller: ``perform("vipu_agent", id=…, check=True)``."""
    host, port = server.address.rsplit(":", 1)

    def perform(name: str, check: bool = False, **options: Any) -> dict[str, Any]:
        action = importlib.import_module(f"ansible_collections.openipu.pod.plugins.action.{name}").ActionModule
        checked = ArgumentSpecValidator(action.task.argument_spec, **action.task.constraints).validate(
            {"api_host": host, "api_port": port, **options}
        )
        assert not checked.error_messages, checked.error_messages
        outcome: dict[str, Any] = action.task.perform(checked.validated_parameters, check, True)
        return outcome

    return perform
