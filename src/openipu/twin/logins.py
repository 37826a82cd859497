# SPDX-License-Identifier: GPL-3.0-or-later
"""How to log in to the switches and PDUs of a rack twin, whose addresses are those of the POD.

The inventory of the twin says the same in its group_vars.
"""

from __future__ import annotations

from typing import Any

# Above the ports that only root can open.
EAPI_PORT = 8443
SNMP_PORT = 1161

USER = "admin"
PASSWORD = "loopback-only"  # noqa: S105  of devices that exist on loopback only
AUTH_KEY = "twin-authentication"  # SHA
PRIV_KEY = "twin-encryption"  # AES

# In the state folder of the twin.
DEVICES = "devices"
TLS = "tls"
CA = f"{DEVICES}/{TLS}/client/ca.crt"


def group_vars(state: str) -> dict[str, dict[str, Any]]:
    """Variables of the groups of an inventory; ``state`` is the state folder of the twin."""
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
