# SPDX-License-Identifier: GPL-3.0-or-later
"""A Poplar server in QEMU, for what the kernel of a container does not give: `python -m tools.guest up`."""
