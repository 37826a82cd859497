# SPDX-License-Identifier: GPL-3.0-or-later
"""Cables, power cords and switch ports of a rack twin.

``wiring.Wiring`` holds the cables between IPU-Machines, ``patch_cables`` those to switches, and ``power`` the devices
at each PDU outlet. A ``wiring.Defect`` is a deviation from the delivered state.
``switch_cabling`` is the interface through which a switch reads its ports.
"""
