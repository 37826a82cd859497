# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connection options of the V-IPU modules and the transport that they select.

The environment variables have the names that Graphcore's command lines use.
"""

from __future__ import annotations

import typing as t

from ansible.module_utils.common.parameters import env_fallback

from ..runner import Connector
from ..runner import Run as RunOn
from .client import ACCESS_KEY_METADATA, USER_ID_METADATA, Connection
from .ports import CONTROLLER_PORT
from .quiet_grpc import HAS_GRPC
from .transport.interface import Transport
from .wire import HAS_PROTOBUF


def _option(name: str, **more: t.Any) -> dict[str, t.Any]:
    return {"fallback": (env_fallback, ["VIPU_CLI_%s" % name]), **more}


CONNECTION_OPTIONS: dict[str, t.Any] = {
    "api_host": _option("API_HOST", type="str", default="localhost"),
    "api_port": _option("API_PORT", type="int", default=CONTROLLER_PORT),
    "api_user_id": _option("API_USER_ID", type="str"),
    "api_access_key": _option("API_ACCESS_KEY", type="str", no_log=True),
    "ca_path": _option("CA_PATH", type="path"),
    "client_cert": _option("CLIENT_CERT", type="path"),
    "client_key": _option("CLIENT_KEY", type="path", no_log=False),  # a path, not a key
    # names, not secrets
    "metadata_user_id_key": _option("METADATA_USER_ID_KEY", type="str", default=USER_ID_METADATA, no_log=False),
    "metadata_access_key_key": _option(
        "METADATA_ACCESS_KEY_KEY", type="str", default=ACCESS_KEY_METADATA, no_log=False
    ),
    "insecure_network": _option("INSECURE_NETWORK", type="bool", default=False),
    "timeout": {"type": "float", "default": 30.0},
    "transport": {"type": "str", "choices": ["grpc", "cli"], "default": "grpc"},
    "vipu_admin_path": {"type": "str", "default": "vipu-admin"},
    "vipu_path": {"type": "str", "default": "vipu"},
}


def connection(params: dict[str, t.Any]) -> Connection:
    """Return the connection that the options of a module describe. Command lines of the vendor call one controller."""
    made = Connection(
        host=params["api_host"],
        port=params["api_port"],
        user_id=params["api_user_id"],
        access_key=params["api_access_key"],
        ca_path=params["ca_path"],
        client_cert=params["client_cert"],
        client_key=params["client_key"],
        timeout=params["timeout"],
        user_id_metadata=params["metadata_user_id_key"].lower(),
        access_key_metadata=params["metadata_access_key_key"].lower(),
        insecure_network=params["insecure_network"],
    )
    return made.first() if params["transport"] == "cli" else made


def open_transport(params: dict[str, t.Any]) -> Transport:
    """Return the selected transport. It connects at its first call."""
    if params["transport"] == "cli":
        from .transport.command_line import CliTransport

        return CliTransport(connection(params), params["vipu_admin_path"], params["vipu_path"])
    from .transport.grpc_api import GrpcTransport

    return GrpcTransport(connection(params))


def _ready(args: dict[str, t.Any]) -> bool:
    return (HAS_GRPC and HAS_PROTOBUF) or args.get("transport") == "cli"


VIPU = Connector(CONNECTION_OPTIONS, open_transport, _ready)
Run = RunOn[Transport]
