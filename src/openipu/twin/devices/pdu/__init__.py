# SPDX-License-Identifier: GPL-3.0-or-later
"""Rack PDU of the twin: an SNMP agent with the state of a real PDU.

users = Credentials([User("apc", "authentication", "encryption", write=True)])
pdu = Pdu("pdu1", "AP8886", loads=watts_by_outlet, credentials=users, folder=Path("state"))
server = await serve(pdu, "127.4.1.1", 0)
...
await server.close()
"""

from openipu.twin.devices.pdu.models import MODELS, Model, find_model
from openipu.twin.devices.pdu.pdu import Pdu, PduFaults
from openipu.twin.devices.pdu.server import Server, serve
from openipu.twin.devices.snmp.users import Community, Credentials, User

__all__ = ["MODELS", "Community", "Credentials", "Model", "Pdu", "PduFaults", "Server", "User", "find_model", "serve"]
