# SPDX-License-Identifier: GPL-3.0-or-later
"""Keyring in a file, in which openstacksdk keeps its tokens."""

from __future__ import annotations

import os
from pathlib import Path

import yaml

FILE = Path("data/python_keyring/keyring_pass.cfg")  # of the keyring, in the folder of the environment


def environment(folder: Path) -> dict[str, str]:
    """Write a copy of clouds.yaml that keeps tokens. Return the environment variables that use it."""
    clouds = folder / "clouds.yaml"
    settings = yaml.safe_load(Path(os.environ["OS_CLIENT_CONFIG_FILE"]).read_text())
    clouds.write_text(yaml.safe_dump({**settings, "cache": {"auth": True}}))
    return {
        "OS_CLIENT_CONFIG_FILE": str(clouds),
        "PYTHON_KEYRING_BACKEND": "keyrings.alt.file.PlaintextKeyring",
        "XDG_DATA_HOME": str(folder / FILE.parts[0]),
    }
