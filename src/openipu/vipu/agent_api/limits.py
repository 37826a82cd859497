# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of the agent API that both sides apply."""

from __future__ import annotations

# A machine has four IPUs, but releases accumulate while its agent is unreachable.
MAX_PARTITIONS_PER_CALL = 64
MAX_FAULTS_PER_EVENT = 64  # a machine has four IPUs; more faults follow with later events
