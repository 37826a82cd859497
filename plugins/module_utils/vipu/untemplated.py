# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts of others as variables of playbooks.

Ansible evaluates templates in extra variables. A text from a network must not become such a template, because
templates can run programs.
"""

from __future__ import annotations

import re
import typing as t

_DELIMITER = re.compile(r"\{(?=[{%#])")
_OTHER_DELIMITERS = "#jinja2:"  # start of a text that defines delimiters of its own


def untemplated(value: t.Any) -> t.Any:
    """Return the value with a space inside of each delimiter that starts a template, in all texts and keys.

    A text that defines other delimiters starts with a space.
    """
    if isinstance(value, str):
        return (" " if value.startswith(_OTHER_DELIMITERS) else "") + _DELIMITER.sub("{ ", value)
    if isinstance(value, dict):
        return {untemplated(key): untemplated(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [untemplated(each) for each in value]
    return value
