# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Default ports of the controller and of agents."""

from __future__ import annotations

CONTROLLER_PORT = 8090
AGENT_PORT = 8080
DISCOVERY_PORT = 8091  # UDP, for the multicast messages of agent discovery
