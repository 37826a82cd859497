# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of playbooks and tasks as users run them, with ``ansible-playbook``: ``make test-playbooks``.

Each case runs in check mode, for real, again without a change, and in check mode again. It does so over both transports
and on module path and action path. ``roles`` has the tasks of roles. The bring-up of a whole POD is part of
``make test``.
"""
