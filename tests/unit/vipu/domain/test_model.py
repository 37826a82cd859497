# SPDX-License-Identifier: GPL-3.0-or-later
"""Kinds of records."""

from __future__ import annotations

from openipu.vipu.domain.model import Kind


def test_kinds_and_their_values_are_the_same_key() -> None:
    for kind in Kind:
        assert {kind: 1}[kind.value] == {kind.value: 1}[kind] == 1
