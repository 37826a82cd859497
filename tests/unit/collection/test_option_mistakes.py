# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages about mistyped options name the right one, and the item of a list."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.plugin_utils.option_mistakes import mistakes

from tests.integration.collection.playbook import rejections

SPEC: dict[str, Any] = {
    "host": {"type": "str", "required": True},
    "items": {
        "type": "list",
        "elements": "dict",
        "options": {
            "id": {"type": "str", "required": True, "aliases": ["key"]},
            "size": {"type": "int"},
            "parts": {"type": "list", "elements": "dict", "options": {"name": {"type": "str", "required": True}}},
            "place": {"type": "dict", "options": {"rack": {"type": "str"}}},
            "form": {"choices": ["ring", "mesh"]},
            "days": {"type": "list", "elements": "str", "choices": ["mon", "tue"]},
            "level": {"type": "int", "choices": [1, 2]},
        },
    },
}


@pytest.mark.parametrize(
    ("items", "found"),
    [
        ([{"id": "a", "size": 1}, {"key": "b"}], []),
        (None, []),
        ("no list", []),
        (["no mapping"], []),
        ([{"id": "a"}, {"id": "b", "sise": 1}], ["items[1] (b): unknown option 'sise'. Did you mean 'size'?"]),
        (
            [{"id": "a", "xyz": 1}],
            ["items[0] (a): unknown option 'xyz'. Choose from id, size, parts, place, form, days, level."],
        ),
        ([{"size": 1}], ["items[0]: missing option 'id'. Add it."]),
        ([{"idd": "a"}], ["items[0]: unknown option 'idd'. Did you mean 'id'?"]),
        (
            [{"id": "a", "parts": [{"name": "p"}, {"nam": "q"}]}],
            ["items[0].parts[1]: unknown option 'nam'. Did you mean 'name'?"],
        ),
        ([{"id": "a", "place": {"rak": 1}}], ["items[0].place: unknown option 'rak'. Did you mean 'rack'?"]),
        (
            [{"id": "a"}, {"id": "b", "form": "rign"}],
            ["items[1] (b): invalid value 'rign' of option 'form'. Did you mean 'ring'?"],
        ),
        (
            [{"key": "a", "days": ["mon", "xyz"]}],
            ["items[0]: invalid value 'xyz' of option 'days'. Choose from mon, tue."],
        ),
        ([{"id": "a", "form": "mesh", "days": ["tue"], "level": "2"}], []),
        ([{"id": "a", "form": None, "days": "mon,tue", "level": 7}], []),  # Ansible converts and checks these
    ],
)
def test_mistakes_name_the_item(items: Any, found: list[str]) -> None:
    assert mistakes({"items": items}, SPEC) == found


@pytest.mark.parametrize(
    ("args", "found"),
    [
        ({"hots": "h"}, ["unknown option 'hots'. Did you mean 'host'?"]),
        ({"HOST": "h"}, ["unknown option 'HOST'. Did you mean 'host'?"]),
        ({"host": "h", "xyz": 1}, ["unknown option 'xyz'. Choose from host, items."]),
        ({"host": "h", "hostt": "h"}, ["unknown option 'hostt'. Choose from host, items."]),
    ],
)
def test_mistyped_options_of_the_module_name_the_right_one(args: Any, found: list[str]) -> None:
    assert mistakes(args, SPEC) == found


def test_missing_options_and_free_text_are_left_to_ansible() -> None:
    assert mistakes({"_raw_params": "text"}, SPEC) == []


def test_a_task_fails_with_the_right_name_of_an_option(tmp_path: Any) -> None:
    message = "Cannot use the options of openipu.pod.vipu_pod: unknown option 'partitons'. Did you mean 'partitions'?"
    task = {"openipu.pod.vipu_pod": {"api_host": "127.0.0.1", "partitons": []}}
    files = {"openipu.pod.host_files": {"file": []}}
    content = {"openipu.pod.awx_content": {"foldr": "x"}}
    assert rejections(tmp_path, [task, {**task, "vars": {"openipu_fast_path": False}}, files, content]) == [
        message,
        message,
        "Cannot use the options of openipu.pod.host_files: unknown option 'file'. Did you mean 'files'?",
        "Cannot use the options of openipu.pod.awx_content: unknown option 'foldr'. Did you mean 'folder'?",
    ]


def test_a_task_fails_with_the_index_of_the_item(tmp_path: Any) -> None:
    items = [{"id": "a", "allocation": "x", "size": 1}, {"id": "b", "alocation": "x", "size": 1}]
    message = (
        "Cannot use the options of openipu.pod.vipu_pod: partitions[1] (b): unknown option 'alocation'. "
        "Did you mean 'allocation'?"
    )
    clusters = [{"id": "a", "agents": ["x"]}, {"id": "b", "agents": ["y"], "topology": "torsu"}]
    task = {"openipu.pod.vipu_pod": {"api_host": "127.0.0.1", "partitions": items}}
    modules = {**task, "vars": {"openipu_fast_path": False}}
    other = {"openipu.pod.vipu_pod": {"api_host": "127.0.0.1", "clusters": clusters}}
    assert rejections(tmp_path, [task, modules, other]) == [
        message,
        message,
        "Cannot use the options of openipu.pod.vipu_pod: clusters[1] (b): invalid value 'torsu' of option 'topology'. "
        "Did you mean 'torus'?",
    ]
