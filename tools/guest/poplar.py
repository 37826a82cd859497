# SPDX-License-Identifier: GPL-3.0-or-later
"""Disk of the Poplar server."""

from __future__ import annotations

import yaml

from .image import BASE, INSIDE, Image
from .site import CHECKOUT

# Packages of a server before a role is applied, and of the simulated switch in the same guest.
PACKAGES = (
    *BASE,
    *("ifupdown", "iputils-ping", "python3-apt"),
    *("nfs-kernel-server", "chrony", "network-manager"),
    *("fdisk", "lvm2"),  # create disks with data that the role must keep
)
# The image also has the packages of the role, because the guest reaches no mirror. They are read from the role, so the
# build fails on a name that Debian does not have.
ROLE = CHECKOUT / "roles/poplar_server/vars/Debian.yml"


def poplar_image() -> Image:
    """Return the disk of the Poplar server."""
    role = [str(name) for name in yaml.safe_load(ROLE.read_text())["poplar_server_packages"]]
    return Image("poplar", (*PACKAGES, *role), INSIDE / "poplar")
