# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of Event-Driven Ansible: the event source with real controllers, the rulebooks with ansible-rulebook."""
