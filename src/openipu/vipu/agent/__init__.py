# SPDX-License-Identifier: GPL-3.0-or-later
"""The program ``virm-agent``: the agent of one IPU-Machine, and the interface of the hardware that it drives.

``main`` is the program and ``server.AgentServer`` the endpoint. ``service.AgentService`` maps the calls of controllers
to methods of ``hardware.Hardware``, and ``presence.Announcer`` announces the agent by multicast.

Rules:

* An agent stores nothing. After a restart it holds no partition.
* Every kind of machine implements ``Hardware``, as an entry point in the group ``openipu.hardware``. The rack twin has
  the only implementation so far.
* Handlers run in one event loop. Changes of partitions run one at a time; reads may run at the same time.
* ``main`` loads the certificates itself, so this package imports ``tls``.
"""
