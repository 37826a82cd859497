# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Forms of the texts in pod.yml and machines.csv. No I/O.

The texts become variables, names of objects, lines of configuration files and arguments of commands. No form allows
the delimiters of a template, of a line, of a quoted string or of a shell command, or a leading '-'.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

from ..vipu.object_rules import ID_RULE, is_valid_id


@dataclass(frozen=True)
class Form:
    """Set of valid texts. ``rule`` completes the sentence "use …" of an error message."""

    rule: str
    accepts: t.Callable[[str], t.Any]


NAME = Form(ID_RULE, is_valid_id)
WORD = Form(
    "1 to 128 letters, digits, '.', '_', ':', '/', '+' or '-', and start with a letter, a digit or ':'",
    re.compile(r"[A-Za-z0-9:][A-Za-z0-9._:/+-]{0,127}").fullmatch,
)
TEXT = Form(
    "1 to 255 letters, digits, spaces, '.', ',', '_', ':', '/', '+', '@', '(', ')' or '-', and do not start with '-'",
    re.compile(r"(?!-)[\w .,:/+@()-]{1,255}").fullmatch,
)
NODE_NAME = Form(
    "1 to 253 lower-case letters, digits, '-' or '.', as 'kubectl get nodes' prints it",
    re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*").fullmatch,
)
_LABEL_PART = r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
NODE_LABEL = Form(
    "a label of Kubernetes, such as 'ipunode=pod1'",
    re.compile(r"([a-z0-9][a-z0-9.-]{0,251}[a-z0-9]/)?%s=%s" % (_LABEL_PART, _LABEL_PART)).fullmatch,
)
