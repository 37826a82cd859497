# SPDX-License-Identifier: GPL-3.0-or-later
"""JSON Patch: applied by another implementation, it has the intended result."""

from __future__ import annotations

from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openipu.kubernetes.domain import json_patch

_keys = st.sampled_from(["a", "b", "graphcore.ai/ipu", "~", "~1", ""])
_leaves = st.none() | st.booleans() | st.integers(0, 3) | st.text("ab", max_size=2)
_values = st.recursive(_leaves, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_keys, inner, max_size=3))
_objects = st.dictionaries(_keys, _values, max_size=4)


@given(_objects, _objects)
def test_the_patch_turns_one_object_into_the_other(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert jsonpatch.apply_patch(before, json_patch.difference(before, after)) == after


@given(_objects)
def test_equal_objects_need_no_patch(thing: dict[str, Any]) -> None:
    assert json_patch.difference(thing, thing) == []


@pytest.mark.parametrize(
    ("before", "after", "operation"),
    [
        ({}, {"a/b": 1}, {"op": "add", "path": "/a~1b", "value": 1}),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, {"op": "add", "path": "/a/b", "value": 2}),
        ({"a": {"b": 1}}, {"a": {}}, {"op": "remove", "path": "/a/b"}),
        ({"a": [1]}, {"a": [1, 2]}, {"op": "add", "path": "/a", "value": [1, 2]}),
        ({"a": None}, {"a": {}}, {"op": "add", "path": "/a", "value": {}}),
    ],
)
def test_operations(before: dict[str, Any], after: dict[str, Any], operation: dict[str, Any]) -> None:
    assert json_patch.difference(before, after) == [operation]
