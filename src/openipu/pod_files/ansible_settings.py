# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of Ansible for an inventory with a ``pod.yml``: a mistake is one message, and ends the program."""

from __future__ import annotations

INVENTORY = """\
[inventory]
enable_plugins = openipu.pod.pod, auto, host_list, script, yaml
any_unparsed_is_failed = true
ignore_patterns = \\.csv, \\.html$, \\.schema\\.json$, ^vault\\.yml$
"""
