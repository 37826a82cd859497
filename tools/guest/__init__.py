# SPDX-License-Identifier: GPL-3.0-or-later
"""Poplar server in QEMU, with kernel features that containers lack: `python -m tools.guest up`."""
