# SPDX-License-Identifier: GPL-3.0-or-later
"""The process of a rack twin: its machines, its devices, faults and run-time control.

``main`` is the program, ``config_file`` reads its configuration, and ``rack.Rack`` has all machines and devices in one
event loop. ``faults`` has the grammar of faults, which files, command line and ``control.TwinService`` share. A new
fault needs an entry in ``faults.VERBS`` and a handler in ``RackFaults``.
"""
