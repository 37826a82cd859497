# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of Horizon in the trial cloud, which imports them as ``local.local_settings``."""
