# SPDX-License-Identifier: GPL-3.0-or-later
"""The setting ``OPENIPU_POD`` of Horizon. No I/O."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from openipu.shared.reconcile import UserError

NAME = "OPENIPU_POD"
_LISTS = ("poplar_servers", "roles")
OTHERS = "*"  # tenants that are not in pod.yml, in the variable of the inventory
OPERATOR = "operator"  # name of the credentials of operators
SUFFIX = ".vipu-cli.hcl"
_PROJECT = re.compile(r"[0-9a-zA-Z-]{1,64}")  # id of a project; "." and "/" would leave the folder

_T = TypeVar("_T")


class SettingsError(UserError):
    """Raised when the setting is invalid."""


@dataclass(frozen=True)
class Awx:
    """AWX that creates and destroys vPODs.

    ``domain``: id of the domain of the projects that may order. Playbooks find projects by name, and names are unique
    in one domain only. ``poplar_servers``: host names in Nova to choose from. ``max_pending``: orders of one project
    that may wait or run at a time.
    """

    url: str
    token_file: str
    poplar_servers: list[str]
    ca_path: str = ""
    domain: str = "default"
    order: str = "Order a vPOD"
    release: str = "Destroy a vPOD"
    timeout: int = 10
    max_pending: int = 3


@dataclass(frozen=True)
class Settings:
    """Settings of the panel.

    ``credentials``: folder with one file for operators and one per project. ``roles``: names of roles in Keystone, of
    which a user needs one for orders and changes. ``teams``: variable ``pod_teams`` of the inventory. ``tenants``:
    its variable ``pod_openstack_tenants``.
    """

    credentials: str = ""
    roles: Sequence[str] = ("member", "admin")
    awx: Awx | None = None
    teams: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tenants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def quota(self, project: str) -> tuple[str, int] | None:
        """Return the team of a project and its quota in IPUs, by the name of the project. None without a quota."""
        found = ((name, team["ipus"]) for name, team in self.teams.items() if team.get("project") == project)
        return next(found, None)

    def tenant(self, project: str) -> Mapping[str, Any]:
        """Return the settings of a tenant, by the name of its project. Empty if they are not known."""
        return self.tenants.get(project, self.tenants.get(OTHERS, {}))

    def project_file(self, project: str) -> Path | None:
        """Return the file with the credentials of a project, which may not exist. None without a folder."""
        if not self.credentials or not _PROJECT.fullmatch(project) or project == OPERATOR:
            return None
        return Path(self.credentials) / f"{project}{SUFFIX}"

    @property
    def operator_file(self) -> Path | None:
        """File with the credentials of operators, which may not exist. None without a folder."""
        return Path(self.credentials) / f"{OPERATOR}{SUFFIX}" if self.credentials else None


def parse(value: Any) -> Settings:
    """Return the settings. Raises SettingsError."""
    content = dict(_mapping(value, NAME))
    awx = content.pop("awx", None)
    teams, tenants = (_plans(content.pop(name, {}), f"{NAME}['{name}']") for name in ("teams", "tenants"))
    for name, team in teams.items():
        ipus = team.get("ipus")
        if not isinstance(ipus, int) or isinstance(ipus, bool):
            raise SettingsError(f"Cannot use {NAME}['teams'][{name!r}]['ipus']: it is not a number. Correct it.")
    found = replace(_parsed(Settings, content, NAME), teams=teams, tenants=tenants)
    if awx is None:
        return found
    parsed = _parsed(Awx, _mapping(awx, f"{NAME}['awx']"), f"{NAME}['awx']")
    if problem := _url_problem(parsed.url):
        raise SettingsError(f"Cannot use {NAME}['awx']['url']: {problem}. Write it as https://HOST.")
    if not parsed.poplar_servers:
        raise SettingsError(f"Cannot use {NAME}['awx']['poplar_servers']: it is empty. Add host names of Nova.")
    return replace(found, awx=parsed)


def _plans(value: Any, place: str) -> dict[str, Mapping[str, Any]]:
    """Return a mapping of mappings by name."""
    return {name: _mapping(each, f"{place}[{name!r}]") for name, each in _mapping(value, place).items()}


def _url_problem(url: str) -> str | None:
    """Return why an address cannot be that of AWX, as a clause. The token of AWX must not leave the host in clear."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "it is not an address"
    if parts.scheme not in ("http", "https") or not parts.hostname or re.search(r"\s", url):
        return "it is not an address"
    if parts.scheme == "http" and not _is_loopback(parts.hostname):
        return "it is not encrypted"
    return None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _mapping(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise SettingsError(f"Cannot use {place}: it is not a mapping. Write it as {{'name': value}}.")
    return value


def _parsed(kind: type[_T], content: Mapping[str, Any], place: str) -> _T:
    """Return an instance of a class, whose fields have the types of their default values, or are texts or lists."""
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    for name, value in content.items():
        if name not in known:
            raise SettingsError(f"Cannot use {place}[{name!r}]: it is unknown. Use one of {', '.join(known)}.")
        field = known[name]
        expected = list if name in _LISTS else str if field.default is MISSING else type(field.default)
        texts = not isinstance(value, list) or all(isinstance(item, str) for item in value)
        if not isinstance(value, expected) or isinstance(value, bool) or not texts:
            words = {list: "a list of texts", str: "a text", int: "a number"}
            raise SettingsError(f"Cannot use {place}[{name!r}]: it is not {words[expected]}. Correct it.")
    required = [name for name, each in known.items() if each.default is MISSING and each.default_factory is MISSING]
    missing = [name for name in required if name not in content]
    if missing:
        raise SettingsError(f"Cannot use {place}: {', '.join(missing)} is missing. Add it.")
    return kind(**content)
