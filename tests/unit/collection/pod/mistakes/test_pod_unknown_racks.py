# SPDX-License-Identifier: GPL-3.0-or-later
"""Racks that machines.csv names and pod.yml does not have: one mistake for each rack."""

from __future__ import annotations

from .test_pod_mistakes import mistakes


def renamed(pod, **content):
    """Return the mistakes of a POD with racks that have other names in machines.csv."""
    path = pod.write(**content)
    path.write_text(path.read_text().replace("rack1", "r7").replace("rack2", "r8"))
    return mistakes(path)


def test_a_rack_with_a_new_name_is_one_mistake(pod):
    found = renamed(pod, racks={1: range(1, 17), 2: range(1, 9)}, cluster="racks: [rack1]")
    assert found == [
        (2, "16 machines in lines 2 to 17: unknown rack 'rack1': known are r7, r8"),
        (18, "8 machines in lines 18 to 25: unknown rack 'rack2': known are r7, r8"),
    ]


def test_a_single_machine_is_named(pod):
    assert renamed(pod, racks={1: [1]}) == [(2, "machine 'm1.1': unknown rack 'rack1': known are r7")]
