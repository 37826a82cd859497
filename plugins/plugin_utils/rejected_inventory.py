# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rejection of an inventory file with one message, whatever other inventory plugins are enabled."""

from __future__ import annotations

from ansible import constants
from ansible.errors import AnsibleError, AnsibleParserError
from ansible.utils.display import Display
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import PodError, load
from ansible_collections.openipu.pod.plugins.module_utils.pod.mistakes import Mistakes
from ansible_collections.openipu.pod.plugins.module_utils.pod.source import read_yaml

_PARSER_ERROR = 4  # exit status of Ansible


def rejection(message: str) -> BaseException:
    """Return the exception for a rejected file.

    For an AnsibleError, the inventory manager tries the remaining plugins, and prints an error of each. So the program
    ends here where Ansible would also fail, with the exit status of Ansible for such errors.
    """
    if not constants.INVENTORY_ANY_UNPARSED_IS_FAILED:
        return AnsibleParserError(message)
    Display().error(message, wrap_text=False)
    return SystemExit(_PARSER_ERROR)


def explained(path: str, plugin: str, error: AnsibleError) -> Exception:
    """Return the exception for a file that Ansible rejects: PodError with its line, or ``error`` for another plugin."""
    try:
        content = read_yaml(path, Mistakes())  # load reports them together with the others
        if content.get("plugin", plugin) != plugin or not content.keys() & {"plugin", "racks"}:
            return error
        load(path)
    except PodError as mistake:
        return mistake
    return PodError(path, None, str(error))
