# SPDX-License-Identifier: GPL-3.0-or-later
"""Django views of the panel. Horizon and Django are not in the environment of other programs."""
