# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connection options of the OpenStack modules, with the names that ``openstack.cloud`` uses."""

from __future__ import annotations

import typing as t

from ...runner import Connector
from ...runner import Run as RunOn
from .client import HAS_OPENSTACK, Cloud

_SECRETS = ("password", "passcode", "token", "application_credential_secret")
_PLAIN = (
    "auth_url",
    "username",
    "user_id",
    "user_domain_name",
    "user_domain_id",
    "project_name",
    "project_id",
    "project_domain_name",
    "project_domain_id",
    "domain_name",
    "domain_id",
    "default_domain_id",
    "system_scope",
    "trust_id",
    "application_credential_id",
    "application_credential_name",
    "endpoint",
)
# The suboptions are listed so that no_log hides the secrets only, not the whole dictionary.
AUTH_OPTIONS: dict[str, t.Any] = {
    **{name: {"type": "str"} for name in _PLAIN},
    **{name: {"type": "str", "no_log": True} for name in _SECRETS},
}
CONNECTION_OPTIONS: dict[str, t.Any] = {
    "cloud": {"type": "str"},
    "auth_type": {"type": "str"},
    "auth": {"type": "dict", "options": AUTH_OPTIONS},
    "region_name": {"type": "str"},
    "interface": {"type": "str", "choices": ["public", "internal", "admin"], "aliases": ["endpoint_type"]},
    "validate_certs": {"type": "bool", "aliases": ["verify"]},
    "ca_cert": {"type": "path", "aliases": ["cacert"]},
    "client_cert": {"type": "path", "aliases": ["cert"]},
    "client_key": {"type": "path", "no_log": False, "aliases": ["key"]},  # a path, not a secret
    "api_timeout": {"type": "int"},
    "concurrency": {"type": "int", "default": 4},
}
# Names in openstacksdk, where they differ.
_SDK = {"validate_certs": "verify", "ca_cert": "cacert", "client_cert": "cert", "client_key": "key"}


def open_cloud(params: dict[str, t.Any]) -> Cloud:
    """Return the cloud of the connection options, without a connection yet."""
    given = {name: params[name] for name in CONNECTION_OPTIONS if name != "concurrency" and params[name] is not None}
    if "auth" in given:
        given["auth"] = {name: value for name, value in given["auth"].items() if value is not None}
    options = {_SDK.get(name, name): value for name, value in given.items()}
    return Cloud({**options, "app_name": "openipu.pod"}, max(1, params["concurrency"]))


OPENSTACK = Connector(CONNECTION_OPTIONS, open_cloud, lambda args: HAS_OPENSTACK)
Run = RunOn[Cloud]
