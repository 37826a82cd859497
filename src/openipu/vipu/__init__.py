# SPDX-License-Identifier: GPL-3.0-or-later
"""The V-IPU control plane: controller, agents, command lines."""
