# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of secrets lists every secret option of modules and roles, and every vault variable of the examples."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests import ROOT
from tests.unit.collection.test_documentation import MODULES, spec

PAGE = ROOT / "docs/reference/secrets.md"
ROW = re.compile(r"^\| `([^`]+)` \| (`vault_[^|]+`) \| ", re.MULTILINE)
VAULT = re.compile(r"\{\{ *(vault_\w+)")
# Settings of the inventory with the options of these modules, by prefix of the module.
CONNECTIONS = {
    "eos": ("eos_connection",),
    "openstack": ("openstack_connection",),
    "pdu": ("pdu_connection",),
    "pod": ("vipu_connection", "vipu_partition_connection"),
    "redfish": ("virm_agent_bmc",),
    "vipu": ("vipu_connection", "vipu_partition_connection"),
}
CONFIGURATIONS = {
    ("eos", "config.snmp_communities"): ("eos_config.snmp_communities",),
    ("pdu", "config.trap_receivers[].community"): ("pdu_config.trap_receivers[].community",),
    ("openstack", "nodes[].bmc.password"): tuple(
        f"{name}.password" for name in ("openstack_bmc", "openstack_machine_bmc", "openstack_server_bmc")
    ),
    # Only tasks of users set these: no playbook or role reads them from an inventory.
    ("openstack", "users[].password"): (),
    ("openstack", "servers[].user_data"): (),
    **{
        ("openstack", f"tenants[].auth.{name}"): ()
        for name in ("password", "passcode", "token", "application_credential_secret")
    },
}
# Settings whose content has the format of another program, so that no option is a secret of its own.
FREE = {"monitoring_snmp.pdu", "monitoring_snmp.switch", "monitoring_alert_receivers"}


def listed() -> dict[str, set[str]]:
    """Return the vault variables of each setting on the page."""
    return {setting: set(re.findall(r"`(vault_\w+)`", cell)) for setting, cell in ROW.findall(PAGE.read_text())}


def secrets(options: dict[str, Any] | None, prefix: str = "") -> Iterator[str]:
    """Yield the path of each option whose value logs omit."""
    for name, option in (options or {}).items():
        path = prefix + name
        if option.get("no_log"):
            yield path
        yield from secrets(option.get("options"), path + ("[]." if option.get("type") == "list" else "."))


def settings_of(module: str) -> set[str]:
    """Return the settings of an inventory with the secrets of a module."""
    family = module.partition("_")[0]
    found: set[str] = set()
    for path in secrets(spec(module)[0]):
        default = tuple(f"{connection}.{path}" for connection in CONNECTIONS[family])
        found.update(CONFIGURATIONS.get((family, path), default))
    return found


def settings_of_roles() -> set[str]:
    specs = [yaml.safe_load(path.read_text()) for path in sorted(ROOT.glob("roles/*/meta/argument_specs.yml"))]
    entries = [entry for spec in specs for entry in spec["argument_specs"].values()]
    return {path for entry in entries for path in secrets(entry.get("options"))}


def test_the_page_lists_the_secrets_of_all_modules_and_roles() -> None:
    expected = {setting for module in MODULES for setting in settings_of(module)} | settings_of_roles() | FREE
    assert sorted(listed()) == sorted(expected)


@pytest.mark.parametrize("folder", ["inventory", "docs", "roles"])
def test_the_page_lists_the_vault_variables_of_the_examples(folder: str) -> None:
    files = [path for path in (ROOT / folder).rglob("*.*") if path.suffix in (".yml", ".md") and path != PAGE]
    files = [path for path in files if "build" not in path.parts]
    used = {name for path in files for name in VAULT.findall(path.read_text())}
    assert used
    assert sorted(used - set().union(*listed().values())) == []


def test_the_example_has_the_variables_of_the_inventory() -> None:
    """Comments in the inventory have optional settings."""
    lines = [
        line
        for path in sorted((ROOT / "inventory/pod64/group_vars").glob("*.yml"))
        for line in path.read_text().splitlines()
        if not line.startswith("#")
    ]
    (example,) = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert set(yaml.safe_load(example)) == set(VAULT.findall("\n".join(lines)))


def test_secrets_in_lists_and_dictionaries_are_found() -> None:
    options = {"a": {"type": "list", "options": {"b": {"no_log": True}}}, "c": {"options": {"d": {"no_log": True}}}}
    assert list(secrets(options)) == ["a[].b", "c.d"]
