# SPDX-License-Identifier: GPL-3.0-or-later
"""Hardware and firmware revision of the PDUs."""

DATE, HARDWARE, FIRMWARE, BOOT_MONITOR = "06/08/2013", "07", "v6.9.6", "v1.0.9"
