# SPDX-License-Identifier: GPL-3.0-or-later
"""The twin of one IPU-Machine: ``hardware.TwinHardware`` with its agent (``machine.Machine``).

Reports follow from the serial number, the addresses and the cables in ``cables.wiring``. ``Machine.start`` is a boot,
with a new boot id and no partitions. ``Machine.stop`` is a loss of power.
"""
