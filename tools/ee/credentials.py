# SPDX-License-Identifier: GPL-3.0-or-later
"""Credentials of jobs: the environment, files and variables that AWX makes of them. Pure functions.

Credential types with injectors are data. AWX has the types Machine and OpenStack itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jinja2.sandbox import ImmutableSandboxedEnvironment

MACHINE = "Machine"
FILES = "/runner/env"  # folder of the files of credentials in the execution environment
_CLOUD = """\
clouds:
  devstack:
    auth:
      auth_url: {{ host | tojson }}
      username: {{ username | tojson }}
      password: {{ password | tojson }}
      project_name: {{ project | tojson }}
      user_domain_name: {{ domain | default('Default', true) | tojson }}
      project_domain_name: {{ project_domain_name | default('Default', true) | tojson }}
    region_name: {{ region | default('', true) | tojson }}
    verify: {{ verify_ssl | default(true) | tojson }}
"""
MANAGED_TYPES: Mapping[str, Mapping[str, Any]] = {
    "OpenStack": {
        "name": "OpenStack",
        "inputs": {"fields": [], "required": ["host", "username", "password", "project"]},
        "injectors": {
            "file": {"template": _CLOUD},
            "env": {"OS_CLIENT_CONFIG_FILE": "{{ tower.filename }}"},
        },
    },
}
# Variables that AWX keeps from credentials.
_RESERVED = frozenset(("VIRTUAL_ENV", "PATH", "PYTHONPATH", "AWX_HOST", "JOB_ID", "INVENTORY_ID", "HOME"))


class CredentialError(Exception):
    """Raised when AWX would reject a credential or its type."""


@dataclass
class Injection:
    """Additions of credentials to a job."""

    environment: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)  # name in ``FILES`` -> content
    extra_variables: list[dict[str, Any]] = field(default_factory=list)  # one file for each credential
    arguments: list[str] = field(default_factory=list)  # of ansible-playbook
    ssh_key: str = ""
    passwords: dict[str, str] = field(default_factory=dict)  # prompt, a regular expression -> password


def inject(types: Iterable[Mapping[str, Any]], credentials: Iterable[Mapping[str, Any]]) -> Injection:
    """Return what credentials add to a job. Raises CredentialError."""
    known = {**MANAGED_TYPES, **{each["name"]: each for each in types}}
    result, used = Injection(), set()
    for credential in credentials:
        kind = credential["credential_type"]
        if kind in used:
            raise CredentialError(f"Cannot use the credential '{credential['name']}': the job has another '{kind}'.")
        used.add(kind)
        if kind == MACHINE:
            _inject_machine(result, credential.get("inputs") or {})
        elif kind in known:
            _inject_type(result, known[kind], credential)
        else:
            raise CredentialError(f"Cannot use the credential '{credential['name']}': no credential type '{kind}'.")
    return result


def _inject_machine(result: Injection, inputs: Mapping[str, Any]) -> None:
    for name, option in (
        ("username", "-u"),
        ("become_method", "--become-method"),
        ("become_username", "--become-user"),
    ):
        if inputs.get(name):
            result.arguments += [option, inputs[name]]
    if inputs.get("ssh_key_data"):
        result.ssh_key = inputs["ssh_key_data"].rstrip("\n") + "\n"
    if inputs.get("password"):
        result.arguments += ["--ask-pass"]
        result.passwords[r"SSH password:\s*?$"] = inputs["password"]
    if inputs.get("become_password"):
        result.arguments += ["--ask-become-pass"]
        result.passwords[r"BECOME password.*:\s*?$"] = inputs["become_password"]


def _inject_type(result: Injection, kind: Mapping[str, Any], credential: Mapping[str, Any]) -> None:
    values = _values(kind, credential)
    injectors = kind.get("injectors") or {}
    prefix = f"credential{len(result.files)}"
    paths: dict[str, str] = {}
    single = ""
    for label, template in (injectors.get("file") or {}).items():
        name = f"{prefix}_{label}"
        result.files[name] = _render(template, values)
        _, dot, key = label.partition(".")
        if dot:
            paths[key] = f"{FILES}/{name}"
        else:
            single = f"{FILES}/{name}"
    names = {"filename": single or paths}
    namespace = {**values, "tower": names, "awx": names}
    for variable, template in (injectors.get("env") or {}).items():
        if variable in _RESERVED or variable.startswith("ANSIBLE_"):
            raise CredentialError(
                f"Cannot use the type '{kind['name']}': AWX rejects the environment variable {variable}."
            )
        result.environment[variable] = _render(template, namespace)
    if variables := injectors.get("extra_vars"):
        result.extra_variables.append(_render_all(variables, namespace))


def _values(kind: Mapping[str, Any], credential: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a credential, with defaults. Raises CredentialError."""
    inputs, prefix = credential.get("inputs") or {}, f"Cannot use the credential '{credential['name']}'"
    fields = {each["id"]: each for each in kind["inputs"].get("fields", [])}
    if fields and (unknown := sorted(set(inputs) - set(fields))):
        raise CredentialError(f"{prefix}: unknown fields: {', '.join(unknown)}.")
    values = {name: each["default"] for name, each in fields.items() if "default" in each}
    values |= {name: False for name, each in fields.items() if each.get("type") == "boolean" and name not in values}
    values |= {name: value if isinstance(value, bool) else str(value) for name, value in inputs.items()}
    if absent := [name for name in kind["inputs"].get("required", []) if values.get(name) in (None, "")]:
        raise CredentialError(f"{prefix}: without values: {', '.join(absent)}.")
    for name, each in fields.items():
        if each.get("choices") and name in values and values[name] not in each["choices"]:
            raise CredentialError(f"{prefix}: '{name}' is not one of its choices.")
    return values


def _render(template: str, values: Mapping[str, Any]) -> str:
    return ImmutableSandboxedEnvironment().from_string(template).render(values)


def _render_all(node: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(node, dict):
        return {_render(name, values): _render_all(each, values) for name, each in node.items()}
    if isinstance(node, list):
        return [_render_all(each, values) for each in node]
    return _render(node, values) if isinstance(node, str) else node
