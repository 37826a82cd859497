# SPDX-License-Identifier: GPL-3.0-or-later
"""The lookup plugin for undefined variables."""

from __future__ import annotations

import json

import pytest

from tests.unit.collection.pod.inventories import run, value

VARIABLES = {
    "complete": {"user": "admin", "password": "{{ secret }}"},
    "secret": "s3cret",
    "optional": "{{ vault_none | default('empty') }}",
    "omitted": {"user": "admin", "key": "{{ vault_none | default(omit) }}"},
    "nested": {
        "list": [{"key": "{{ vault_key }}"}, "{{ between }}", "{{ vault_key ~ lookup('ansible.builtin.env', 'A') }}"]
    },
    "between": "{{ range(2) | list }} {{ vault_deep }}",
    "attribute": "token: {{ complete.none }}",
    "text": "{{ vault_other }} {{ vault_another }}",
    "account": {"user": "admin", "password": "{{ vault_none }}", "key": "{{ vault_key }}"},
    "whole": "{{ vault_whole }}",
}


@pytest.mark.parametrize(
    ("terms", "found"),
    [
        (["complete", "optional", "omitted", "omitted.key", "none_such"], []),
        (["nested"], [("vault_key", "nested"), ("vault_deep", "nested")]),
        (
            ["text", "complete", "between"],
            [("vault_another", "text"), ("vault_other", "text"), ("vault_deep", "between")],
        ),
        (["attribute"], [("{{ complete.none }}", "attribute")]),
        (["account.user", "account.none_such", "complete.user.name"], []),
        (["account.key", "account.password"], [("vault_key", "account.key"), ("vault_none", "account.password")]),
        (["whole.user"], [("vault_whole", "whole.user")]),
    ],
)
def test_all_undefined_variables_are_found(tmp_path, terms, found):
    hosts = tmp_path / "hosts.json"
    hosts.write_text(json.dumps({"all": {"hosts": {"host1": VARIABLES}}}))
    items = value(hosts, "host1", f"query('openipu.pod.undefined_variables', *{terms})")
    assert [(item["name"], item["used_in"]) for item in items] == found


def test_variables_of_all_hosts_are_examined_in_one_call(tmp_path):
    hosts = tmp_path / "hosts.json"
    one = {"connection": {"password": "{{ vault_one }}", "user": "{{ own }}"}, "own": "admin"}
    two = {"connection": {"password": "{{ vault_one }}", "key": "{{ vault_two }}", "user": "{{ own }}"}}
    hosts.write_text(json.dumps({"all": {"hosts": {"host1": one, "host2": two, "host3": {}}}}))
    items = value(hosts, "host3", "query('openipu.pod.undefined_variables', 'connection', hosts=groups['all'])")
    assert [item["name"] for item in items] == ["vault_one", "vault_two", "own"]
    query = "query('openipu.pod.undefined_variables', 'connection', hosts=groups['all'], having='own')"
    assert [item["name"] for item in value(hosts, "host3", query)] == ["vault_one"]


def test_hosts_that_do_not_exist_are_rejected(tmp_path):
    hosts = tmp_path / "hosts.json"
    hosts.write_text(json.dumps({"all": {"hosts": {"host1": {}}}}))
    expression = "{{ query('openipu.pod.undefined_variables', 'connection', hosts=['host2']) }}"
    done = run("ansible", "-i", hosts, "host1", "-m", "ansible.builtin.debug", "-a", json.dumps({"msg": expression}))
    output = " ".join((done.stdout + done.stderr).split())
    assert done.returncode != 0, output
    assert "Cannot read the variables of host 'host2': it is not in the inventory. Correct hosts." in output
