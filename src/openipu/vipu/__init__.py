# SPDX-License-Identifier: GPL-3.0-or-later
"""The V-IPU control plane: controller, agents, command lines."""

import os

# As in wire.py, which programs import after gRPC itself.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
