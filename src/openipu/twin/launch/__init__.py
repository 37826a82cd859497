# SPDX-License-Identifier: GPL-3.0-or-later
"""Start and stop of the processes of a rack twin.

``launcher.Twin`` is the entry point: one twin per state folder, with two background processes. ``rack_config`` makes
the configuration of the rack process from the POD model, and ``generate.PodSize`` makes inventories of any size.
``relay`` reaches a twin in a network namespace from outside.
"""
