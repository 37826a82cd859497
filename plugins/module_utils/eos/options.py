# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Argument specification of the switch modules: options for the connection and for the desired configuration."""

from __future__ import annotations

import typing as t

from ansible.module_utils.common.parameters import env_fallback

from ..runner import Connector
from ..runner import Run as RunOn
from .client import HAS_PYEAPI, Connection, Switch

CONNECTION_OPTIONS: dict[str, t.Any] = {
    "host": {"type": "str"},
    "port": {"type": "int"},
    "use_ssl": {"type": "bool", "default": True},
    "username": {"type": "str", "fallback": (env_fallback, ["ANSIBLE_NET_USERNAME"])},
    "password": {"type": "str", "no_log": True, "fallback": (env_fallback, ["ANSIBLE_NET_PASSWORD"])},
    "enable_password": {"type": "str", "no_log": True, "fallback": (env_fallback, ["ANSIBLE_NET_AUTH_PASS"])},
    "validate_certs": {"type": "bool", "default": True},
    "ca_path": {"type": "path"},
    "client_cert": {"type": "path"},
    "client_key": {"type": "path", "no_log": False},  # a path, not a key
    "timeout": {"type": "float", "default": 30.0},
}

VLAN_OPTIONS: dict[str, t.Any] = {"id": {"type": "int", "required": True}, "name": {"type": "str"}}
INTERFACE_OPTIONS: dict[str, t.Any] = {
    "name": {"type": "str", "required": True},
    "description": {"type": "str"},
    "enabled": {"type": "bool"},
    "mtu": {"type": "int"},
    "address": {"type": "str"},
    "mode": {"type": "str", "choices": ["access", "trunk", "routed"]},
    "access_vlan": {"type": "int"},
    "native_vlan": {"type": "int"},
    "trunk_vlans": {"type": "list", "elements": "int"},
    "port_channel": {
        "type": "dict",
        "options": {
            "id": {"type": "int", "required": True},
            "lacp": {"type": "str", "choices": ["active", "passive", "on"], "default": "active"},
        },
    },
    "edge": {"type": "bool"},
    "lldp": {"type": "bool"},
    "dscp_trust": {"type": "bool"},
    "no_drop": {"type": "list", "elements": "int"},
    "ecn": {
        "type": "dict",
        "options": {name: {"type": "int", "required": True} for name in ("queue", "minimum", "maximum")},
    },
}
_NAMES = {"type": "list", "elements": "str"}
SETTING_OPTIONS: dict[str, t.Any] = {
    "hostname": {"type": "str"},
    "lldp": {"type": "bool"},
    "spanning_tree": {"type": "str", "choices": ["mstp", "rstp", "rapid-pvst", "none"]},
    "ntp_servers": _NAMES,
    "syslog_servers": _NAMES,
    "gateways": _NAMES,
    "snmp_location": {"type": "str"},
    "snmp_contact": {"type": "str"},
    "snmp_communities": {**_NAMES, "no_log": True},
    "pfc_watchdog_timeout": {"type": "float"},
    "pfc_watchdog_recovery": {"type": "float"},
    "pfc_watchdog_action": {"type": "str", "choices": ["drop", "errdisable", "notify-only"]},
}
CONFIG_OPTIONS: dict[str, t.Any] = {
    "vlans": {"type": "list", "elements": "dict", "options": VLAN_OPTIONS},
    "interfaces": {"type": "list", "elements": "dict", "options": INTERFACE_OPTIONS},
    **SETTING_OPTIONS,
}


def open_switch(params: dict[str, t.Any]) -> Switch:
    """Return the switch of these options. It connects at the first request."""
    return Switch(
        Connection(
            host=params["host"] or "",
            port=params["port"],
            https=params["use_ssl"],
            **{name: params[name] for name in CONNECTION_OPTIONS if name not in ("host", "port", "use_ssl")},
        )
    )


EOS = Connector(CONNECTION_OPTIONS, open_switch, lambda args: HAS_PYEAPI)
Run = RunOn[Switch]
