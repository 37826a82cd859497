# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Family of servers, the desired servers of a task, and their ports. No I/O."""

from __future__ import annotations

import typing as t

from ...reconcile import Family, Field, Mode, Object
from ..network.families import PORT
from ..network.options import CONFIG_OPTIONS, PORT_CONFLICTS

SERVER = Family(
    "server",
    (
        Field("usable", immutable=True),  # False for a server that failed to start: it is recreated
        Field("image", immutable=True),
        Field("flavor", immutable=True),
        Field("host", immutable=True),
        Field("networks", Mode.WRITE_ONLY),
        Field("key_pair", Mode.WRITE_ONLY),
        Field("user_data", Mode.WRITE_ONLY),
        Field("config_drive", Mode.WRITE_ONLY),
    ),
    key="name",
)

_STR: dict[str, t.Any] = {"type": "str"}
_NAME: dict[str, t.Any] = {"type": "str", "required": True}
_PORT: dict[str, t.Any] = CONFIG_OPTIONS[PORT.plural]["options"]
NETWORK_OPTIONS: dict[str, t.Any] = {
    "network": _NAME,
    "name": _STR,
    **{name: _PORT[name] for name in ("addresses", "address_choices", "subnets", "port_security", "security_groups")},
    **{name: _PORT[name] for name in ("vnic_type", "hardware_offload")},
}
OPTIONS: dict[str, t.Any] = {
    "pod": _NAME,
    "project": _STR,
    "servers": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            "name": _NAME,
            "image": _STR,
            "flavor": _STR,
            "host": _STR,
            "key_pair": {"type": "str", "no_log": False},  # the name of the key, not a secret
            "user_data": {"type": "str", "no_log": True},
            "config_drive": {"type": "bool"},
            "networks": {
                "type": "list",
                "elements": "dict",
                "options": NETWORK_OPTIONS,
                "mutually_exclusive": PORT_CONFLICTS,
            },
        },
    },
}


def desired(params: Object) -> list[Object]:
    """Return the desired servers of the options."""
    return [
        {**{name: value for name, value in item.items() if value is not None}, "usable": True}
        for item in params["servers"]
    ]


def desired_ports(servers: t.Iterable[Object]) -> list[Object]:
    """Return the ports of servers, in the format of the option of ``openstack_pod_network``."""
    return [
        {**network, "name": port_name(server, network)}
        for server in servers
        for network in server.get("networks") or ()
    ]


def port_name(server: Object, network: Object) -> str:
    """Return the name of the port of a server on a network."""
    return "%s-%s" % (server["name"], network.get("name") or network["network"])
