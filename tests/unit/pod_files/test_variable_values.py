# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of variables beside pod.yml that roles and modules would reject, as ``openipu-pod validate`` reports them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from ansible import constants

from openipu.pod_files import variable_values, variables
from tests import ROOT
from tests.unit.collection.pod.conftest import PodFiles
from tests.unit.pod_files.test_validate import pod, program  # noqa: F401  fixture

SPECS = sorted(ROOT.glob("roles/*/meta/argument_specs.yml"))
VALID = sorted([*ROOT.glob("roles/*/defaults/main.yml"), *ROOT.glob("inventory/*/*_vars/**/*.yml")])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "all.yml"


def invalid(file: Path, text: str) -> list[tuple[int | None, int | None, str]]:
    """Return line, column and message of each mistake in a file."""
    file.write_text(text)
    found = (*variable_values.without_quotes([file]), *variable_values.invalid([file]))
    return [(each.line, each.column, each.message) for each in found]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("eos_connection: {hots: tor1}", "variable 'eos_connection': unknown key 'hots': did you mean 'host'?"),
        ("eos_connection: {port: abc}", "variable 'eos_connection.port' must be a whole number, not 'abc'"),
        ("eos_connection: [tor1]", "variable 'eos_connection' must be a mapping, not a list"),
        ("eos_connection: admin", "variable 'eos_connection' must be a mapping, not a single value"),
        ("eos_connection: 5", "variable 'eos_connection' must be a mapping, not a single value"),
        ("vipu_connection: true", "variable 'vipu_connection' must be a mapping, not a single value"),
        ("eos_config: {vlans: [11]}", "variable 'eos_config.vlans' must be a mapping, not a single value"),
        ("eos_config: {vlans: [{name: a}]}", "variable 'eos_config.vlans' has no key 'id': add it"),
        (
            "eos_config: {spanning_tree: stp}",
            "variable 'eos_config.spanning_tree' must be one of mstp, rstp, rapid-pvst, none, not 'stp'",
        ),
        ("pdu_connection: {version: v1}", "variable 'pdu_connection.version' must be one of v3, v2c, not 'v1'"),
        ("pdu_redundant: maybe", "variable 'pdu_redundant' must be true or false, not 'maybe'"),
        ("pdu_breaker_share: 80 %", "variable 'pdu_breaker_share' must be a number, not '80 %'"),
        ("pod_cluster_test: twice", "variable 'pod_cluster_test' must be one of once, always, never, not 'twice'"),
        ("vipu_server_port: abc", "variable 'vipu_server_port' must be a whole number, not 'abc'"),
        ("monitoring_parts: node_exporter", "variable 'monitoring_parts' must be a list, not 'node_exporter'"),
        ("monitoring_name: [a, b]", "variable 'monitoring_name' must be a single value, not a list"),
        (
            f"monitoring_name: {{{'a' * 50}: b}}",
            "variable 'monitoring_name' must be a single value, not a mapping",
        ),
        (f"vipu_server_port: {'a' * 50}", f"variable 'vipu_server_port' must be a whole number, not '{'a' * 40}…'"),
    ],
)
def test_an_invalid_value_has_its_line_and_the_expected_type(file: Path, text: str, message: str) -> None:
    [(line, column, found)] = invalid(file, f"---\n# comment\n{text}\n")
    assert (line, found) == (3, message)
    assert column


def test_a_warning_has_the_path_from_the_folder_of_the_command(
    pod: PodFiles,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pod.write()
    (pod.folder / "group_vars").mkdir()
    (pod.folder / "group_vars/all.yml").write_text("eos_connection: 5\n")
    monkeypatch.chdir(pod.folder.parent)
    warning, _summary = program("validate", pod.folder.name).output.splitlines()
    assert warning.startswith(f"{pod.folder.name}/group_vars/all.yml:1:1: warning: variable 'eos_connection' must be ")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("own: {{ host }}", "own"),
        ("own:\n  key: {{ host }}", "own.key"),
        ("own:\n  - {{ host }}", "own"),
        ("own:\n  - key:\n    - {{ host }}", "own.key"),
        ("eos_connection: {{ host }}", "eos_connection"),
        ("eos_connection:\n  host: {{ host }}", "eos_connection.host"),
        ("monitoring_parts: [{{ host }}]", "monitoring_parts"),
    ],
)
def test_a_template_without_quotes_is_invalid(file: Path, text: str, name: str) -> None:
    [(line, _column, message)] = invalid(file, text + "\n")
    assert message == f"variable '{name}': the template has no quotes: write \"{{{{ … }}}}\""
    assert line == text.count("\n") + 1


@pytest.mark.parametrize("text", ["own: 'a {{ b }'", "own: ['{{ b']", "vipu_server_port: '{{ b'"])
def test_a_template_without_its_end_is_invalid(file: Path, text: str) -> None:
    [(_line, _column, message)] = invalid(file, text + "\n")
    assert message.endswith(": the template is not closed: add '}}'")


def test_each_item_of_a_list_has_its_line(file: Path) -> None:
    text = "monitoring_parts:\n  - node_exporter\n  - nod_exporter\npoplar_server_pfc_priorities:\n  - a\n"
    (part_line, part_column, part), (number_line, _column, number) = invalid(file, text)
    assert (part_line, part_column, number_line) == (3, 5, 5)
    assert part.startswith("variable 'monitoring_parts' must be one of node_exporter, snmp_exporter, ")
    assert part.endswith(", not 'nod_exporter'")
    assert number == "variable 'poplar_server_pfc_priorities' must be a whole number, not 'a'"


@pytest.mark.parametrize(
    "text",
    [
        'vipu_server_port: "{{ port }}"',
        "vipu_server_port: '8090'",
        "vipu_server_port:",
        "vipu_server_port: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  6162",
        'eos_connection: {port: "{{ port }}", password: !vault x}',
        'monitoring_parts: "{{ parts }}"',
        'monitoring_parts: ["{% if a %}b{% endif %}"]',
        "eos_config: {gateways: 10.1.3.1}",  # the module converts it
        "pdu_community: 5",
        "own: {vipu_server_port: abc}",
        'own: {"{id}": 1}',
        '"own": {"{{ host }}": 5}',
        'own:\n  - "{a}": b',
        "- vipu_server_port",
        "vipu_server_port: [",
    ],
)
def test_valid_values_templates_and_own_variables_are_none(file: Path, text: str) -> None:
    assert invalid(file, text + "\n") == []


def test_values_of_secrets_are_not_printed(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variable_values, "_role_options", lambda: {"pin": {"type": "int", "no_log": True}})
    [(_line, _column, message)] = invalid(file, "pin: secret\n")
    assert message == "variable 'pin' must be a whole number, not this value"


@pytest.mark.parametrize(
    "text",
    [
        "pdu_connection: username=admin auth_key=hunter2",
        "vipu_partition_connection: access_key=hunter2,",
        "eos_config: {vlans: hunter2}",
        "monitoring_ipmi: {machine: 'admin:hunter2'}",
    ],
)
def test_a_text_in_place_of_a_mapping_is_not_printed(file: Path, text: str) -> None:
    [(_line, _column, message)] = invalid(file, text + "\n")
    assert message.endswith(", not a single value")
    assert "hunter2" not in message


def values(option: variable_values.Option, value: str) -> Iterator[str]:
    """Yield a value for an option and for each option in it, as YAML."""
    yield value
    yield f"[{value}]"
    for key, inner in (option.get("options") or {}).items():
        for each in values(inner, value):
            yield f"{{{key}: {each}}}"
            yield f"[{{{key}: {each}}}]"


@pytest.mark.parametrize("value", ["5", "true", "1.5", "2026-01-01", "a", "a=b", "''", "{a: 1}"])
def test_no_value_of_a_setting_ends_the_check(file: Path, value: str) -> None:
    settings = variable_values.settings().items()
    lines = [f"{name}: {text}" for name, option in settings for text in values(option, value)]
    assert len(lines) > 500
    for line in lines:
        invalid(file, line + "\n")


def test_a_wrong_configuration_of_ansible_leaves_roles_out(pod: PodFiles) -> None:  # noqa: F811
    pod.write()
    (pod.folder / "group_vars").mkdir()
    (pod.folder / "group_vars/all.yml").write_text("eos_connection: 5\nvipu_server_port: abc\n")
    (pod.folder / "ansible.cfg").write_text("[defaults\n")
    environment = {**os.environ, "ANSIBLE_CONFIG": str(pod.folder / "ansible.cfg")}
    command = [Path(sys.executable).with_name("openipu-pod"), "validate", pod.folder]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)
    assert "'eos_connection' must be a mapping" in done.stdout, done.stderr
    assert done.stdout.endswith(" 1 warning.\n")


@pytest.mark.parametrize("path", VALID, ids=lambda path: str(path.relative_to(ROOT)))
def test_defaults_of_roles_and_examples_are_valid(path: Path) -> None:
    assert [str(each) for each in variable_values.invalid([path])] == []


def test_the_options_of_all_roles_are_checked_and_declared_alike(file: Path) -> None:
    declared = [
        (name, tuple(str(option.get(key)) for key in ("type", "elements", "choices", "options")))
        for path in SPECS
        for entry in yaml.safe_load(path.read_text())["argument_specs"].values()
        for name, option in (entry.get("options") or {}).items()
    ]
    assert dict(declared).items() == set(declared)
    numbers = sorted(name for name, (kind, *_more) in dict(declared).items() if kind == "int")
    assert len(numbers) > 20
    found = invalid(file, "".join(f"{name}: abc\n" for name in numbers))
    assert [message.split("'")[1] for _line, _column, message in found] == numbers


def test_settings_are_those_of_the_playbooks() -> None:
    assert set(variable_values.settings()) - set(variables.SETTINGS) == set()


def test_without_the_collection_settings_are_still_checked(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "COLLECTIONS_PATHS", [])
    monkeypatch.setattr(variable_values.sys, "path", [])
    uncached = variable_values._role_options.__wrapped__
    monkeypatch.setattr(variable_values, "_role_options", uncached)
    assert uncached() == {}
    [(_line, _column, message)] = invalid(file, "vipu_server_port: abc\npdu_redundant: maybe\n")
    assert message.startswith("variable 'pdu_redundant' ")


def test_validate_prints_them(pod) -> None:  # noqa: F811
    pod.write()
    (pod.folder / "host_vars").mkdir()
    (pod.folder / "host_vars/m1.1.yml").write_text("vipu_server_port: abc\n")
    warning, summary = program("validate", ".").output.splitlines()
    assert warning == ("host_vars/m1.1.yml:1:1: warning: variable 'vipu_server_port' must be a whole number, not 'abc'")
    assert summary.endswith(" 1 warning.")
