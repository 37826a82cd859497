# SPDX-License-Identifier: GPL-3.0-or-later
"""Helpers of the tests of the switch modules: the POD, runs in this process, and application of diffs."""

from __future__ import annotations

import re
from typing import Any

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.common.parameters import remove_values
from ansible_collections.openipu.pod.plugins.module_utils.eos.task import EOS_POD
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import load
from ansible_collections.openipu.pod.plugins.module_utils.pod.switch_config import switch_config
from ansible_collections.openipu.pod.plugins.module_utils.runner import Task

from openipu.twin.devices.eos.config.startup import startup_config
from tests import ROOT
from tests.integration.eos_switches import DATA, MANAGEMENT, Rack, ServedSwitch

POD = load(str(ROOT / "inventory/pod64/pod.yml"))
SWITCHES = {switch.name: switch for rack in POD.racks for switch in rack.switches}
MODELS = {"tor1": DATA, "mgmt1": MANAGEMENT}
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@")


def desired(name: str) -> dict[str, Any]:
    """Return the desired configuration of a switch of an IPU-POD64 from the POD model."""
    return dict(switch_config(POD, SWITCHES[name]))


def new_switch(rack: Rack, name: str, **more: Any) -> ServedSwitch:
    """Serve a new switch with the minimal configuration for management."""
    startup = startup_config(name, SWITCHES[name].addresses["management"] + "/24")
    return rack.switch(name, MODELS[name], startup=startup, **more)


def run(
    switch: ServedSwitch, config: dict[str, Any] | None = None, check: bool = False, **options: Any
) -> dict[str, Any]:
    """Run eos_pod in this process, as its action plugin does, without Ansible."""
    given = {} if config is None else {"config": config}
    return perform(EOS_POD, {**switch.options(**options), **given}, check)


def perform(task: Task[Any], options: dict[str, Any], check: bool = False) -> dict[str, Any]:
    """Run any task in this process."""
    checked = ArgumentSpecValidator(task.argument_spec, **task.constraints).validate(options)
    assert not checked.error_messages, checked.error_messages
    result: dict[str, Any] = remove_values(
        task.perform(checked.validated_parameters, check, True), checked._no_log_values
    )
    return result


def apply_diff(lines: list[str], diff: str) -> list[str]:
    """Apply a unified diff strictly: every context line must match."""
    result: list[str] = []
    at = 0
    body = iter(diff.splitlines())
    assert [next(body)[:4], next(body)[:4]] == ["--- ", "+++ "]
    for row in body:
        if hunk := _HUNK.fullmatch(row):
            start = int(hunk[1]) - (hunk[2] != "0")
            result += lines[at:start]
            at = start
            continue
        sign, text = row[0], row[1:]
        if sign != "+":
            assert lines[at] == text, f"line {at + 1} is {lines[at]!r}, but {text!r} in the diff"
            at += 1
        if sign != "-":
            result.append(text)
    return result + lines[at:]
