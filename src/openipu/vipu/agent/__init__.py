# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent of one IPU-Machine, and the interface of the hardware that it drives."""
