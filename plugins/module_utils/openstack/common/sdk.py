# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Import of openstacksdk, which takes most of the time of a short task. Import this module before the SDK."""

from __future__ import annotations

import importlib

from ...garbage import large_import

try:
    with large_import():
        importlib.import_module("openstack")
    HAS_OPENSTACK = True
except ImportError:
    HAS_OPENSTACK = False
