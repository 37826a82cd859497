# SPDX-License-Identifier: GPL-3.0-or-later
"""The twin of an Arista EOS switch: its configuration, its show commands, and eAPI in front of them."""
