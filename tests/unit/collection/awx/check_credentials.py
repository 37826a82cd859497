# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of credential types and their use, with the rules by which AWX accepts injectors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from jinja2 import Environment, meta

from tests.unit.collection.awx.checks import label, playbook_of
from tests.unit.collection.awx.content import Content, Item, Unsafe, named
from tests.unit.collection.awx.playbooks import Playbook, argument_spec

_ENVIRONMENT = Environment()
_FILE = re.compile(r"template(\.[a-zA-Z_]\w*)?")
_FILENAME = re.compile(r"tower\.filename\.(\w+)")
_FIELD_KEYS = {"id", "label", "type", "format", "choices", "help_text", "multiline", "secret", "default"}
# Dictionaries of connection options, and a module with these options, or its suboption with them.
CONNECTIONS = {
    "vipu_connection": "openipu.pod.vipu_info",
    "eos_connection": "openipu.pod.eos_pod",
    "pdu_connection": "openipu.pod.pdu",
    "virm_agent_bmc": "openipu.pod.redfish_info",
    "openstack_connection": "openipu.pod.openstack_pod_bare_metal",
    "openstack_machine_bmc": "openipu.pod.openstack_pod_bare_metal nodes bmc",
    "openstack_server_bmc": "openipu.pod.openstack_pod_bare_metal nodes bmc",
}


def injectors(content: Content) -> Iterator[str]:
    """Injectors with fields, files, variables or options that do not exist."""
    for item in content.credential_types:
        place = label("credential_types", item)
        fields = {field["id"]: field for field in item["inputs"]["fields"]}
        for field in item["inputs"]["fields"]:
            yield from (f"{place}: field '{field['id']}' has unknown key '{key}'" for key in set(field) - _FIELD_KEYS)
        missing = set(item["inputs"].get("required", [])) - set(fields)
        yield from (f"{place}: required field '{name}' does not exist" for name in sorted(missing))
        files = item["injectors"].get("file", {})
        yield from (f"{place}: malformed file '{name}'" for name in files if not _FILE.fullmatch(name))
        used = set()
        for where, template in _templates(item["injectors"]):
            if not isinstance(template, Unsafe):
                yield f"{place}: {where} needs the tag !unsafe, because AWX renders it"
            names = meta.find_undeclared_variables(_ENVIRONMENT.parse(template)) - {"tower"}
            used |= names
            yield from (f"{place}: {where} uses missing field '{name}'" for name in sorted(names - set(fields)))
            for name in _FILENAME.findall(template):
                if f"template.{name}" not in files:
                    yield f"{place}: {where} uses missing file '{name}'"
        yield from (f"{place}: field '{name}' is not used" for name in sorted(set(fields) - used))
        for name in item["injectors"].get("env", {}):
            if name.startswith("ANSIBLE_"):
                yield f"{place}: AWX rejects environment variables such as {name}"
        for variable, value in item["injectors"].get("extra_vars", {}).items():
            options = _options(CONNECTIONS.get(variable, ""))
            if isinstance(value, dict):
                yield from (
                    f"{place}: '{name}' is no option of {variable}" for name in sorted(set(value) - set(options))
                )


def _options(path: str) -> dict[str, Any]:
    """Return the options of a module, or of one of its suboptions."""
    module, *names = path.split(" ")
    options = argument_spec(module)
    for name in names:
        options = options[name]["options"]
    return options


def _templates(injectors: dict[str, Any], where: str = "") -> Iterator[tuple[str, str]]:
    for name, value in injectors.items():
        path = f"{where}.{name}" if where else name
        if isinstance(value, dict):
            yield from _templates(value, path)
        else:
            yield path, value


def secrets(content: Content) -> Iterator[str]:
    """Secrets in the content, and secret fields that AWX would show."""
    for item in content.credentials:
        kind = content.credential_type(item["name"])
        fields = {field["id"]: field for field in kind["inputs"]["fields"]} if kind else {}
        for name in item.get("inputs", {}):
            if kind is None and name in ("password", "ssh_key_data", "become_password", "vault_password"):
                yield f"{label('credentials', item)}: '{name}' is a secret"
            elif kind and name not in fields:
                yield f"{label('credentials', item)}: field '{name}' does not exist"
            elif kind and fields[name].get("secret"):
                yield f"{label('credentials', item)}: '{name}' is a secret"
        if item.get("update_secrets", True):
            yield f"{label('credentials', item)}: update_secrets is not false, so every run is a change"
    for item in content.credential_types:
        for field in item["inputs"]["fields"]:
            if re.search("pass|key$|secret|token", field["id"]) and not field.get("secret"):
                yield f"{label('credential_types', item)}: field '{field['id']}' is not secret"


def use(content: Content) -> Iterator[str]:
    """Credentials that a playbook does not use, shows, or needs without having them."""
    for item in content.templates:
        playbook = playbook_of(item)
        if playbook is None:
            continue
        place = label("templates", item)
        types = [
            named(content.credentials).get(name, {}).get("credential_type") for name in item.get("credentials", [])
        ]
        yield from (f"{place}: two credentials of type '{kind}'" for kind in {k for k in types if types.count(k) > 1})
        if playbook.become and "Machine" not in types:
            yield f"{place}: '{item['playbook']}' becomes root, and there is no credential of type Machine"
        if playbook.ssh and "Machine" not in types:
            yield f"{place}: '{item['playbook']}' connects to hosts, and there is no credential of type Machine"
        if "Machine" in types and not playbook.ssh:
            yield f"{place}: '{item['playbook']}' runs on the control node only, and needs no Machine"
        if "OpenStack" in types and not any(".openstack_" in module for module in playbook.modules):
            yield f"{place}: credential of type OpenStack is not used by '{item['playbook']}'"
        for name in item.get("credentials", []):
            kind = content.credential_type(name)
            if kind:
                yield from _used(f"{place}: credential '{name}'", kind, playbook, item["playbook"])


def _used(place: str, kind: Item, playbook: Playbook, file: str) -> Iterator[str]:
    injectors = kind["injectors"]
    for name in injectors.get("extra_vars", {}):
        if name not in playbook.used:
            yield f"{place}: variable '{name}' is not used by '{file}'"
        if name in playbook.shown:
            yield f"{place}: '{file}' shows variable '{name}'"
    for name in sorted(set(injectors.get("env", {})) - playbook.environment()):
        yield f"{place}: no module of '{file}' reads the environment variable '{name}'"


def variables(content: Content, template: Item) -> set[str]:
    """Return the extra variables that the credentials of a job template provide."""
    found = set()
    for name in template.get("credentials", []):
        kind = content.credential_type(name)
        found.update(kind["injectors"].get("extra_vars", {}) if kind else ())
    return found
