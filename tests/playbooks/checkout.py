# SPDX-License-Identifier: GPL-3.0-or-later
"""Environment of a user who runs playbooks in a checkout."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests import ROOT

PROGRAMS = Path(sys.executable).parent


def environment(home: Path) -> dict[str, str]:
    """Return variables with the settings of the checkout. ``home``: folder of the user, for all files of Ansible."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "VIPU_"))}
    return {
        **inherited,
        "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
        "HOME": str(home),
        "ANSIBLE_HOME": str(home / ".ansible"),
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_NOCOLOR": "true",
    }
