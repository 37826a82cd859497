# SPDX-License-Identifier: GPL-3.0-or-later
"""Attacks on controller, agents and command lines: ``make attack``, and its short form in ``make test``.

Each attack runs twice: with its defence, which must hold, and with the defence switched off, where the
test must fail. The short form leaves out the second run. Declare the defence with
``@pytest.mark.defence("package.module.NAME", value)``, where ``value`` switches it off. Mark attacks
that take more than two seconds with ``@pytest.mark.long``. The short form must end within 30 seconds
in one process.
"""
