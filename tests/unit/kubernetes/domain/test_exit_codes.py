# SPDX-License-Identifier: GPL-3.0-or-later
"""Sets of exit codes."""

from __future__ import annotations

import pytest

from openipu.kubernetes.domain import exit_codes


@pytest.mark.parametrize(
    ("text", "codes"),
    [("1", {1}), ("1-3", {1, 2, 3}), ("1-2, 130", {1, 2, 130}), (" 5 - 6 ,5", {5, 6}), ("255", {255})],
)
def test_numbers_and_ranges(text, codes):
    assert exit_codes.parse(text) == codes


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "'' is neither a number nor a range"),
        ("1,,2", "'' is neither a number nor a range"),
        ("1-", "'1-' is neither a number nor a range"),
        ("x", "'x' is neither a number nor a range"),
        ("256", "256 is above 255"),
        ("9-3", "the range '9-3' is empty"),
        ("0-3", "0 means success"),
    ],
)
def test_invalid_texts(text, reason):
    with pytest.raises(ValueError, match=f"^{reason}$"):
        exit_codes.parse(text)
