# SPDX-License-Identifier: GPL-3.0-or-later
"""What tests of the switch modules share: the POD they configure, quick runs in this process, and diffs put to use."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.common.parameters import remove_values
from ansible_collections.openipu.pod.plugins.module_utils.eos.tasks import EOS_POD
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import load
from ansible_collections.openipu.pod.plugins.module_utils.pod.switching import switch_config
from ansible_collections.openipu.pod.plugins.module_utils.runner import Task
from eos_switches import DATA, MANAGEMENT, Rack, ServedSwitch

from openipu.twin.eos.startup import startup_config

POD = load(str(Path(__file__).parents[3] / "inventory/pod64/pod.yml"))
SWITCHES = {switch.name: switch for rack in POD.racks for switch in rack.switches}
MODELS = {"tor1": DATA, "mgmt1": MANAGEMENT}
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@")


def wanted(name: str) -> dict[str, Any]:
    """What the POD model says of a switch of an IPU-POD64."""
    return dict(switch_config(POD, SWITCHES[name]))


def delivered(rack: Rack, name: str, **more: Any) -> ServedSwitch:
    """That switch, with nothing on it but what lets it be managed."""
    startup = startup_config(name, SWITCHES[name].addresses["management"] + "/24")
    return rack.switch(name, MODELS[name], startup=startup, **more)


def run(
    switch: ServedSwitch, config: dict[str, Any] | None = None, check: bool = False, **options: Any
) -> dict[str, Any]:
    """eos_pod in this process, as its action plugin runs it, without an Ansible around it."""
    given = {} if config is None else {"config": config}
    return perform(EOS_POD, {**switch.options(**options), **given}, check)


def perform(task: Task[Any], options: dict[str, Any], check: bool = False) -> dict[str, Any]:
    """Any task in this process."""
    checked = ArgumentSpecValidator(task.argument_spec, **task.constraints).validate(options)
    assert not checked.error_messages, checked.error_messages
    done: dict[str, Any] = remove_values(
        task.perform(checked.validated_parameters, check, True), checked._no_log_values
    )
    return done


def patched(lines: list[str], diff: str) -> list[str]:
    """The lines after a unified diff, every line of which has to fit where it says that it belongs."""
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
            assert lines[at] == text, f"line {at + 1} is {lines[at]!r}, and the diff says {text!r}"
            at += 1
        if sign != "-":
            result.append(text)
    return result + lines[at:]
