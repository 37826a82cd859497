# SPDX-License-Identifier: GPL-3.0-or-later
"""Ports and credentials of the switches and PDUs of a rack twin; their addresses come from the POD.

The group_vars of the twin's inventory contain the same values.
"""

from __future__ import annotations

from typing import Any

# Not the standard ports: only root can open those.
EAPI_PORT = 8443
SNMP_PORT = 1161

USER = "admin"
READER = "reader"  # of SNMP, without write access
PASSWORD = "loopback-only"  # noqa: S105  for devices on loopback only
AUTH_KEY = "twin-authentication"  # SHA
PRIV_KEY = "twin-encryption"  # AES

# Paths in the state folder of the twin.
DEVICES = "devices"
TLS = "tls"
CA = f"{DEVICES}/{TLS}/client/ca.crt"


def group_vars(state: str) -> dict[str, dict[str, Any]]:
    """Return the variables of inventory groups; ``state`` is the state folder of the twin."""
    return {
        "switches": {
            "eos_connection": {
                "port": EAPI_PORT,
                "username": USER,
                "password": PASSWORD,
                "ca_path": f"{state}/{CA}",
            }
        },
        "pdus": {
            "pdu_connection": {"port": SNMP_PORT, "username": USER, "auth_key": AUTH_KEY, "priv_key": PRIV_KEY},
        },
    }
