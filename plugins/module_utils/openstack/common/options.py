# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connection options of the OpenStack modules, with the names that ``openstack.cloud`` uses."""

from __future__ import annotations

import typing as t

from ...runner import Connector
from ...runner import Run as RunOn
from .client import Cloud, CloudError, log_sdk
from .sdk import HAS_OPENSTACK

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
    "cloud": {"type": "raw"},
    "auth_type": {"type": "str"},
    "auth": {"type": "dict", "options": AUTH_OPTIONS},
    "region_name": {"type": "str"},
    "interface": {"type": "str", "choices": ["public", "internal", "admin"], "aliases": ["endpoint_type"]},
    "validate_certs": {"type": "bool", "aliases": ["verify"]},
    "ca_cert": {"type": "path", "aliases": ["cacert"]},
    "client_cert": {"type": "path", "aliases": ["cert"]},
    "client_key": {"type": "path", "no_log": False, "aliases": ["key"]},  # a path, not a secret
    "api_timeout": {"type": "int"},
    "sdk_log_path": {"type": "path"},
    "sdk_log_level": {"type": "str", "choices": ["INFO", "DEBUG"], "default": "INFO"},
    "concurrency": {"type": "int", "default": 4},
}
_OWN = ("cloud", "sdk_log_path", "sdk_log_level", "concurrency")  # options that are no settings of the SDK
# Names in openstacksdk, where they differ.
_SDK = {"validate_certs": "verify", "ca_cert": "cacert", "client_cert": "cert", "client_key": "key"}


def open_cloud(params: dict[str, t.Any]) -> Cloud:
    """Return the cloud of the connection options, without a connection yet. Raises CloudError."""
    given = {name: params[name] for name in CONNECTION_OPTIONS if name not in _OWN and params[name] is not None}
    if "auth" in given:
        given["auth"] = {name: value for name, value in given["auth"].items() if value is not None}
    options = {_SDK.get(name, name): value for name, value in given.items()}
    cloud = params["cloud"]
    if isinstance(cloud, dict):
        options = {**cloud, **options}
    elif cloud is not None:
        options["cloud"] = str(cloud)
    if params["sdk_log_path"]:
        log_sdk(params["sdk_log_path"], params["sdk_log_level"] == "DEBUG")
    return Cloud({**options, "app_name": "openipu.pod"}, max(1, params["concurrency"]))


def separate_credentials(args: dict[str, t.Any]) -> dict[str, t.Any]:
    """Return the arguments of a task with the credentials of a dictionary ``cloud`` as the option ``auth``.

    Only the suboptions of ``auth`` mark secrets, which Ansible hides in logs and results. Raises CloudError.
    """
    cloud = args.get("cloud")
    if not isinstance(cloud, t.Mapping) or "auth" not in cloud:
        return args
    if args.get("auth") is not None:
        raise CloudError("Cannot use both the option auth and auth in cloud. Omit one of them.")
    return {**args, "cloud": {name: value for name, value in cloud.items() if name != "auth"}, "auth": cloud["auth"]}


OPENSTACK = Connector(CONNECTION_OPTIONS, open_cloud, lambda args: HAS_OPENSTACK, separate_credentials)
Run = RunOn[Cloud]
