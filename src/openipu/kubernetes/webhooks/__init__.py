# SPDX-License-Identifier: GPL-3.0-or-later
"""Admission webhooks: defaults and checks of IPUJobs, and IPUs for plain pods. Start with ``server``."""
