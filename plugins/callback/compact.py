# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Output of Ansible without plays that run no task."""

from __future__ import annotations

DOCUMENTATION = r"""
name: compact
type: stdout
short_description: Default output without plays that run no task
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Prints the output of P(ansible.builtin.default#callback), without the headers of plays that have no hosts or no task to run.
  - One line before the recap names the plays without hosts.
extends_documentation_fragment:
  - default_callback
  - result_format_callback
requirements:
  - To use it, set C(stdout_callback = openipu.pod.compact) in the section C([defaults]) of C(ansible.cfg). The C(ansible.cfg) of a
    checkout of this collection does.
"""

import typing as t

from ansible import constants as C  # noqa: N812 - the name in all callbacks of Ansible
from ansible.plugins.callback.default import CallbackModule as DefaultCallback


class CallbackModule(DefaultCallback):
    """Callback that prints the header of a play with its first task."""

    CALLBACK_NAME = "openipu.pod.compact"

    def __init__(self) -> None:
        super().__init__()
        self._started: t.Any = None  # play without a header so far
        self._unmatched: list[str] = []  # names of plays without hosts

    def v2_playbook_on_play_start(self, play: t.Any) -> None:
        self._started = play

    def v2_playbook_on_no_hosts_matched(self) -> None:
        if self._started is not None:
            self._unmatched.append(self._started.get_name().strip())
            self._started = None

    def v2_playbook_on_no_hosts_remaining(self) -> None:
        self._print_header()
        super().v2_playbook_on_no_hosts_remaining()

    def v2_playbook_on_task_start(self, task: t.Any, is_conditional: bool) -> None:
        self._print_header()
        super().v2_playbook_on_task_start(task, is_conditional)

    def v2_playbook_on_cleanup_task_start(self, task: t.Any) -> None:
        self._print_header()
        super().v2_playbook_on_cleanup_task_start(task)

    def v2_playbook_on_handler_task_start(self, task: t.Any) -> None:
        self._print_header()
        super().v2_playbook_on_handler_task_start(task)

    def v2_runner_on_start(self, host: t.Any, task: t.Any) -> None:
        self._print_header()
        super().v2_runner_on_start(host, task)

    def v2_playbook_on_include(self, included_file: t.Any) -> None:
        self._print_header()
        super().v2_playbook_on_include(included_file)

    def v2_playbook_on_stats(self, stats: t.Any) -> None:
        if self._unmatched:
            names = "; ".join(dict.fromkeys(self._unmatched))  # a playbook can be imported twice
            self._display.display("\nPlays without hosts: %s" % names, color=C.COLOR_SKIP)
        super().v2_playbook_on_stats(stats)

    def _print_header(self) -> None:
        if self._started is not None:
            play, self._started = self._started, None
            super().v2_playbook_on_play_start(play)
