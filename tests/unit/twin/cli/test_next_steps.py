# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that finds a fault of a machine."""

from __future__ import annotations

import pytest

from openipu.twin.cli import next_steps


@pytest.mark.parametrize(
    ("fault", "option"),
    [
        ("unplug ag03:7", "--cabling"),
        ("break ag03:7", "--ipulink"),
        ("break ag03:internal4", "--ipulink"),
        ("break ag03:gw1", "--gwlink"),
        ("break ag03:sync6", "--sync"),
        ("errors ag03:7 500", "--traffic"),
        ("version ag03 Virm 1.17.0", "--versions"),
    ],
)
def test_the_printed_command_selects_one_test(fault, option):
    assert next_steps.cluster_test(fault.split()) == (option,)
