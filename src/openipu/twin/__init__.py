# SPDX-License-Identifier: GPL-3.0-or-later
"""The rack twin: IPU-Machines on loopback, with faults at run time."""
