# SPDX-License-Identifier: GPL-3.0-or-later
"""Mistyped names of variables beside pod.yml, as ``openipu-pod validate`` reports them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from openipu.pod_files import variables
from tests import ROOT
from tests.unit.collection.pod.conftest import PodFiles
from tests.unit.pod_files.test_validate import pod, program  # noqa: F401  fixture

_SPECS = sorted(ROOT.glob("roles/*/meta/argument_specs.yml"))
_EXAMPLES = sorted(path for name in ("group_vars", "host_vars") for path in ROOT.glob(f"inventory/*/{name}"))


def write(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def mistyped(folder: Path) -> list[tuple[str, int | None, str]]:
    return [(each.file, each.line, each.message) for each in variables.read(folder).mistyped()]


@pytest.mark.parametrize(
    ("file", "name", "message"),
    [
        ("group_vars/all.yml", "eos_conection", "unknown variable 'eos_conection': did you mean 'eos_connection'?"),
        ("host_vars/m1.1.yml", "eos_configs", "did you mean 'eos_config'?"),
        ("group_vars/pdus/main.yml", "pdu_connections", "did you mean 'pdu_connection'?"),
        ("group_vars/pdus", "pdu_conecton", "did you mean 'pdu_connection'?"),
        ("group_vars/all.yml", "eso_connection", "did you mean 'eos_connection'?"),
        ("group_vars/all.yml", "vipu_conection", "did you mean 'vipu_connection'?"),
        ("group_vars/all.yml", "vipu_wait_timout", "did you mean 'vipu_wait_timeout'?"),
        ("group_vars/all.yml", "cabling_strickt", "did you mean 'cabling_strict'?"),
        ("group_vars/all.yml", "monitoring_retenton", "did you mean 'monitoring_retention'?"),
        ("host_vars/m1.2.yml", "vipu_server_prot", "did you mean 'vipu_server_port'?"),
        ("group_vars/all.yml", "common_alow", "did you mean 'common_allow'?"),
    ],
)
def test_a_mistyped_name_is_a_warning(pod: PodFiles, file: str, name: str, message: str) -> None:  # noqa: F811
    pod.write()
    write(pod.folder, file, f"---\n# {name}\nmine: 1\n{name}: {{username: admin}}\n")
    done = program("validate", ".")
    assert done.exit_code == 0
    warning, summary = done.output.splitlines()
    assert warning.startswith(f"{file}:4:1: warning: unknown variable '{name}': ")
    assert warning.endswith(message)
    assert summary.endswith(" 1 warning.")
    [found] = json.loads(program("validate", ".", "-o", "json").output)["warnings"]
    assert (found["file"], found["line"]) == (file, 4)


def test_a_file_that_is_not_yaml_is_a_mistake(pod: PodFiles) -> None:  # noqa: F811
    """Ansible rejects it in each run."""
    pod.write()
    write(pod.folder, "group_vars/all.yml", "eos_connection:\n  username: admin\n password: x\n")
    write(pod.folder, "group_vars/pdus.yml", "# nothing yet\n")
    write(pod.folder, "group_vars/switches.json", '{\n\t"eos_config": {},\n\t"own": 1\n}\n')  # Ansible reads it as JSON
    write(pod.folder, "host_vars/tor1.yml", "token: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  61\n")
    done = program("validate", ".")
    mistake, summary = done.output.splitlines()
    assert mistake.startswith("group_vars/all.yml:3:")
    assert ": is not YAML: " in mistake
    assert (done.exit_code, summary) == (1, "1 mistake.")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("host: {{ name }}:80", '1:17: is not YAML: the template has no quotes: write "{{ … }}"'),
        ("- host", "1: is not a mapping: write NAME: VALUE"),
        ("host", "1: is not a mapping: write NAME: VALUE"),
        ("host: {{ name }}", "1:1: variable 'host': the template has no quotes: write \"{{ … }}\""),
        ("a: 1\nb: [1\nc: 2", "2:4: is not YAML: this '[' is not closed: add ']'"),
    ],
)
def test_a_file_of_variables_has_remedies_of_its_own(pod: PodFiles, text: str, message: str) -> None:  # noqa: F811
    pod.write()
    write(pod.folder, "group_vars/all.yml", text + "\n")
    write(pod.folder, "group_vars/empty.yml", "---\n# nothing yet\n")
    write(pod.folder, "group_vars/null.yml", "--- ~\n")
    found, _summary = program("validate", ".").output.splitlines()
    assert found == f"group_vars/all.yml:{message}"


def test_a_rehearsal_rejects_it_before_the_twin_starts(pod: PodFiles) -> None:  # noqa: F811
    pod.write()
    write(pod.folder, "group_vars/all.yml", "eos_connection:\n  username: admin\n password: x\n")
    write(pod.folder, "group_vars/pdus.yml", "pdu_redundant: maybe\n")
    done = program("rehearse", ".", "--state-dir", pod.folder / "twin")
    assert done.exit_code == 1
    assert "group_vars/all.yml:3:2: is not YAML: " in done.output
    assert "group_vars/pdus.yml:1:1: warning: variable 'pdu_redundant' must be true or false" in done.output
    assert not (pod.folder / "twin").exists()


def test_a_file_that_is_not_utf_8_is_a_mistake(pod: PodFiles) -> None:  # noqa: F811
    pod.write()
    write(pod.folder, "group_vars/all.yml", "")
    (pod.folder / "group_vars/all.yml").write_bytes(b"own: \xe9\n")
    assert program("validate", ".").output.startswith("group_vars/all.yml:1: is not UTF-8 text: save it as UTF-8\n")


def test_own_variables_of_the_user_are_no_warning(tmp_path: Path) -> None:
    write(
        tmp_path,
        "group_vars/all.yml",
        "eos_login: admin\neos_connection: {username: '{{ eos_login }}'}\nmy_connection: {}\n",
    )
    assert mistyped(tmp_path) == []


@pytest.mark.parametrize(
    "name",
    ["pdu_community", "pdu_contact", "pdu_count", "eos_config_file", "eos_contact", "cabling_script", "eos_version"],
)
def test_own_variables_with_a_prefix_of_the_playbooks_are_no_warning(tmp_path: Path, name: str) -> None:
    write(tmp_path, "group_vars/all.yml", f"{name}: x\n")
    assert mistyped(tmp_path) == []


@pytest.mark.parametrize(
    ("own", "use"),
    [
        ("pdu_snmp_community: x\n", ""),
        ("eos_conection: x\n", "my_a: \"Rack #1 {{ 'a' if eos_conection }}\"\n"),
        ("eos_conection: x\n", "my_a: 'Rack #1: \"{{ eos_conection }}'\n"),
        ("eos_conection: x\n", "my_a: it's {{ eos_conection }}\n"),
    ],
)
def test_variables_of_own_playbooks_and_in_quotes_are_no_warning(tmp_path: Path, own: str, use: str) -> None:
    write(tmp_path, "group_vars/all.yml", own + use)
    assert mistyped(tmp_path) == []


def test_a_use_in_a_comment_is_none(tmp_path: Path) -> None:
    write(tmp_path, "group_vars/all.yml", "eos_conection: x\nmy_a: 'b' # eos_conection\n  # eos_conection\n")
    assert [line for _file, line, _message in mistyped(tmp_path)] == [1]


def test_variables_in_pod_yml_are_used(pod: PodFiles) -> None:  # noqa: F811
    pod.write(tail="compose: {my_user: eos_conection.username}\n")
    write(pod.folder, "group_vars/all.yml", "eos_conection: {username: admin}\n")
    assert mistyped(pod.folder) == []


@pytest.mark.parametrize("file", ["vault.yml", "group_vars/all/vault.yml"])
def test_a_mistyped_secret_is_a_warning(tmp_path: Path, file: str) -> None:
    write(tmp_path, "group_vars/switches.yml", 'eos_connection:\n  password: "{{ vault_switch_password }}"\n')
    write(tmp_path, file, "vault_switch_pasword: x\nvault_of_another_project: y\n")
    message = "unknown variable 'vault_switch_pasword': did you mean 'vault_switch_password'?"
    assert mistyped(tmp_path) == [(file, 1, message)]
    assert variables.read(tmp_path).similar("vault_switch_password") == "vault_switch_pasword"
    write(tmp_path, file, "$ANSIBLE_VAULT;1.1;AES256\n3132\n")
    assert mistyped(tmp_path) == []


def test_a_defined_secret_is_not_undefined(tmp_path: Path) -> None:
    write(tmp_path, "group_vars/all.yml", "vault_a: x\neos_connection: {password: '{{ vault_a }}{{ vault_b }}'}\n")
    assert variables.read(tmp_path).undefined == {"vault_b": "group_vars/all.yml:2"}


def test_settings_of_roles_and_of_the_examples_are_no_warnings(tmp_path: Path) -> None:
    names = {
        name
        for path in _SPECS
        for entry in yaml.safe_load(path.read_text())["argument_specs"].values()
        for name in entry.get("options") or ()
    }
    assert len(names) > 100
    write(tmp_path, "group_vars/all.yml", "".join(f"{name}: x\n" for name in sorted(names)))
    assert mistyped(tmp_path) == []
    for folder in _EXAMPLES:
        assert [*variables.read(folder.parent).mistyped(names)] == []


def test_all_settings_of_the_playbooks_with_a_prefix_are_known() -> None:
    playbooks = [path.read_text() for path in ROOT.glob("playbooks/**/*.yml")]
    uses = re.compile(rf"\b(?:{'|'.join(variables.PREFIXES)})\w+(?= \| default\()")
    used = {name for text in playbooks for name in uses.findall(text)}
    described = {name for text in playbooks for name in re.findall(r"^# (\w+): ", text, re.MULTILINE)}
    described = {name for name in described if name.startswith(variables.PREFIXES)}
    assert used and described
    assert (used | described) - set(variables.SETTINGS) == set()
    unused = {name for name in variables.SETTINGS if not any(re.search(rf"\b{name}\b", text) for text in playbooks)}
    assert unused == set()
