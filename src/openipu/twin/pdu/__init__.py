# SPDX-License-Identifier: GPL-3.0-or-later
"""A rack PDU of the twin: an SNMP agent with the state of a real one.

pdu = Pdu("pdu1", "AP8886", loads=watts_by_outlet, folder=Path("state"))
server = await serve(pdu, "127.4.1.1", 0, Credentials([User("apc", "authentication", "encryption", write=True)]))
...
await server.close()
"""

from openipu.twin.pdu.models import MODELS, Model
from openipu.twin.pdu.pdu import Faults, Pdu
from openipu.twin.pdu.server import Server, serve
from openipu.twin.pdu.users import Community, Credentials, User

__all__ = ["MODELS", "Community", "Credentials", "Faults", "Model", "Pdu", "Server", "User", "serve"]
