# SPDX-License-Identifier: GPL-3.0-or-later
"""SNMP agent of any device of the twin: users, requests, and the engine of pysnmp on a UDP port.

server = Server(device, bind("127.4.1.1", 0))
await server.start()
...
await server.close()
"""
