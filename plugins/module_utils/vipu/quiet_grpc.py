# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Import of gRPC without its messages on standard error, such as one for every failed handshake.

gRPC reads the variable at its import. Programs import this module before any other one that imports gRPC, because
they report errors themselves. The environment stays unchanged, for this process and those that it starts.
"""

from __future__ import annotations

import importlib
import os

from ..garbage import large_import

_VARIABLE = "GRPC_VERBOSITY"
_given = os.environ.get(_VARIABLE)
os.environ.setdefault(_VARIABLE, "NONE")
try:
    with large_import():
        importlib.import_module("grpc")
    HAS_GRPC = True
except ImportError:
    HAS_GRPC = False
finally:
    if _given is None:
        del os.environ[_VARIABLE]
