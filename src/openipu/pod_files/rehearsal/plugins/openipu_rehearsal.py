# SPDX-License-Identifier: GPL-3.0-or-later
"""Callback plugin of Ansible that writes the results of a run as lines of JSON."""

from __future__ import annotations

import json
import os
import time
from typing import Any

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: openipu_rehearsal
type: aggregate
short_description: Results of a rehearsal as lines of JSON
description: Writes one line for each play and each result to the file descriptor in OPENIPU_REHEARSAL_RESULTS.
"""


class CallbackModule(CallbackBase):  # type: ignore[misc]  # Ansible has no types
    """Writer of the results."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "openipu_rehearsal"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._descriptor = int(os.environ["OPENIPU_REHEARSAL_RESULTS"])
        self._play = ""

    def _write(self, **line: Any) -> None:
        text = json.dumps({**line, "time": time.monotonic()}, default=str) + "\n"
        data = text.encode()
        while data:
            data = data[os.write(self._descriptor, data) :]

    def v2_playbook_on_play_start(self, play: Any) -> None:
        """Write the name of a play."""
        self._play = play.get_name().strip()
        self._write(kind="play", play=self._play)

    def _result(self, kind: str, result: Any, ignored: bool = False) -> None:
        content = result._result
        if content.get("_ansible_no_log"):
            content = {key: content[key] for key in ("changed", "failed") if key in content}
        diff = content.get("diff") or [each["diff"] for each in content.get("results", ()) if each.get("diff")]
        self._write(
            kind=kind,
            play=self._play,
            task=result._task.get_name().strip(),
            action=result._task.action,
            # In an inventory of several PODs, the name of the host is not that of the device.
            host=result._host.vars.get("pod_device", result._host.get_name()),
            changed=bool(content.get("changed")),
            ignored=ignored,
            msg=content.get("msg"),
            diff=diff if isinstance(diff, list) else [diff],
            warnings=[str(each) for each in content.get("warnings") or ()],
            findings=content.get("findings") or [],
        )

    def v2_runner_on_ok(self, result: Any) -> None:
        """Write a result."""
        self._result("ok", result)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        """Write a failure. A failure that a rescue section handles is reported by its last task."""
        self._result("failed", result, ignore_errors)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        """Write an unreachable host."""
        self._result("failed", result)
