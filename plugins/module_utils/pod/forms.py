# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Forms of the texts in pod.yml and machines.csv. No I/O.

The texts become variables, names of objects, lines of configuration files and arguments of commands. No form allows
the delimiters of a template, of a line, of a quoted string or of a shell command, or a leading '-'.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..vipu.object_rules import ID_PATTERN, ID_RULE


@dataclass(frozen=True)
class Form:
    """Set of valid texts. ``rule`` completes the sentence "use …" of an error message.

    ``pattern`` matches a whole text. It is also part of the JSON Schema, so Python and ECMAScript must share its
    syntax. The exception is ``\\w``, which includes the letters of all alphabets.
    """

    rule: str
    pattern: str

    def accepts(self, text: str) -> bool:
        """Return whether a text has this form."""
        return re.fullmatch(self.pattern, text) is not None


NAME = Form(ID_RULE, ID_PATTERN)
WORD = Form(
    "1 to 128 letters, digits, '.', '_', ':', '/', '+' or '-', and start with a letter, a digit or ':'",
    r"[A-Za-z0-9:][A-Za-z0-9._:/+-]{0,127}",
)
HOST = Form("%s. Write several hosts as a list" % WORD.rule, WORD.pattern)
TEXT = Form(
    "1 to 255 letters, digits, spaces, '.', ',', '_', ':', '/', '+', '@', '(', ')' or '-', and do not start with '-'",
    r"(?!-)[\w .,:/+@()-]{1,255}",
)
TEAM_NAME = Form(
    "1 to 31 letters, digits, '_' or '-', and start with a letter or a digit",
    r"[A-Za-z0-9][A-Za-z0-9_-]{0,30}",
)
NAMESPACE = Form(
    "1 to 63 lower-case letters, digits or '-', as 'kubectl get namespaces' prints it",
    r"(?=.{1,63}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?",
)
NODE_NAME = Form(
    "1 to 253 lower-case letters, digits, '-' or '.', as 'kubectl get nodes' prints it",
    r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*",
)
_LABEL_PART = r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
NODE_LABEL = Form(
    "a label of Kubernetes, such as 'ipunode=pod1'",
    r"([a-z0-9][a-z0-9.-]{0,251}[a-z0-9]/)?%s=%s" % (_LABEL_PART, _LABEL_PART),
)
