# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of the modules for PDUs: connection and configuration."""

from __future__ import annotations

import typing as t

from ..runner import Connector
from ..runner import Run as RunOn
from .client import PduClient
from .session import AUTH_PROTOCOLS, HAS_PYSNMP, PRIV_PROTOCOLS, Connection

CONNECTION_OPTIONS: dict[str, t.Any] = {
    "host": {"type": "str", "required": True},
    "port": {"type": "int", "default": 161},
    "version": {"type": "str", "choices": ["v3", "v2c"], "default": "v3"},
    "username": {"type": "str"},
    "security_level": {
        "type": "str",
        "choices": ["auth_priv", "auth_no_priv", "no_auth_no_priv"],
        "default": "auth_priv",
    },
    "auth_protocol": {"type": "str", "choices": list(AUTH_PROTOCOLS), "default": "sha"},
    "auth_key": {"type": "str", "no_log": True},
    "priv_protocol": {"type": "str", "choices": list(PRIV_PROTOCOLS), "default": "aes"},
    "priv_key": {"type": "str", "no_log": True},
    "context": {"type": "str", "default": ""},
    "community": {"type": "str", "no_log": True},
    "write_community": {"type": "str", "no_log": True},
    "timeout": {"type": "float", "default": 2.0},
    "retries": {"type": "int", "default": 3},
}
CONSTRAINTS: dict[str, t.Any] = {
    "required_if": [("version", "v3", ("username",)), ("version", "v2c", ("community",))],
}

_THRESHOLDS: dict[str, t.Any] = {name: {"type": "int"} for name in ("low_load", "near_overload", "overload")}
_CIRCUITS = {"type": "list", "elements": "dict", "options": {"number": {"type": "int"}, **_THRESHOLDS}}
RECEIVER_OPTIONS: dict[str, t.Any] = {
    "address": {"type": "str", "required": True},
    "community": {"type": "str", "no_log": True},
    "enabled": {"type": "bool"},
}
OUTLET_OPTIONS: dict[str, t.Any] = {
    "number": {"type": "int", "required": True},
    "name": {"type": "str"},
    "state": {"type": "str", "choices": ["on", "off"]},
    "command": {"type": "str", "choices": ["reboot"]},
    "on_delay": {"type": "int"},
    "off_delay": {"type": "int"},
    "reboot_duration": {"type": "int"},
}
CONFIG_OPTIONS: dict[str, t.Any] = {
    "name": {"type": "str"},
    "location": {"type": "str"},
    "contact": {"type": "str"},
    **{name: {"type": "float"} for name in _THRESHOLDS},
    "phases": _CIRCUITS,
    "banks": _CIRCUITS,
    "trap_receivers": {"type": "list", "elements": "dict", "options": RECEIVER_OPTIONS},
    "outlets": {
        "type": "list",
        "elements": "dict",
        "options": OUTLET_OPTIONS,
        "mutually_exclusive": [("state", "command")],
    },
}


def open_client(params: dict[str, t.Any]) -> PduClient:
    """Return a client of the PDU in a module's options; nothing is sent yet."""
    return PduClient(Connection(**{name: params[name] for name in CONNECTION_OPTIONS}))


PDU = Connector(CONNECTION_OPTIONS, open_client, lambda args: HAS_PYSNMP)
Run = RunOn[PduClient]
