# SPDX-License-Identifier: GPL-3.0-or-later
"""The operator: it runs IPUJobs. Start with ``reconciler``."""
