# SPDX-License-Identifier: GPL-3.0-or-later
"""The lookup plugin for undefined variables."""

from __future__ import annotations

import json

import pytest

from tests.unit.collection.pod.inventories import value

VARIABLES = {
    "complete": {"user": "admin", "password": "{{ secret }}"},
    "secret": "s3cret",
    "optional": "{{ vault_none | default('empty') }}",
    "nested": {
        "list": [{"key": "{{ vault_key }}"}, "{{ between }}", "{{ vault_key ~ lookup('ansible.builtin.env', 'A') }}"]
    },
    "between": "{{ range(2) | list }} {{ vault_deep }}",
    "attribute": "token: {{ complete.none }}",
    "text": "{{ vault_other }} {{ vault_another }}",
}


@pytest.mark.parametrize(
    ("terms", "found"),
    [
        (["complete", "optional", "none_such"], []),
        (["nested"], [("vault_key", "nested"), ("vault_deep", "nested")]),
        (
            ["text", "complete", "between"],
            [("vault_another", "text"), ("vault_other", "text"), ("vault_deep", "between")],
        ),
        (["attribute"], [("{{ complete.none }}", "attribute")]),
    ],
)
def test_all_undefined_variables_are_found(tmp_path, terms, found):
    hosts = tmp_path / "hosts.json"
    hosts.write_text(json.dumps({"all": {"hosts": {"host1": VARIABLES}}}))
    items = value(hosts, "host1", f"query('openipu.pod.undefined_variables', *{terms})")
    assert [(item["name"], item["used_in"]) for item in items] == found
