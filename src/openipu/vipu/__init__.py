# SPDX-License-Identifier: GPL-3.0-or-later
"""The V-IPU control plane: controller, agents, command lines."""

import os

# gRPC reads this variable at import time. ``wire.py`` sets it too, but programs import that module later.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
