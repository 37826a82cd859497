# SPDX-License-Identifier: GPL-3.0-or-later
"""Connections to the agents of a POD: supervision and discovery.

``supervisor.Supervisor`` keeps one ``connection.AgentConnection`` per registered agent: one gRPC channel and one stream
of heartbeats. It reports agents that come up, go down or send events to a ``Watcher``, which must not block. An agent
is Down after ``supervisor.MAX_SILENT_INTERVALS`` without a heartbeat, or at once when its connection breaks. Calls with
``AgentConnection.call_if_up`` then fail at once.

``discovery.Discovery`` lists unregistered agents too. Agents announce themselves by UDP multicast (IPv4) every five
seconds, with a time to live of 1. A message is a ``Presence`` of the agent API (host, port, boot id). The controller:

* listens only on the interfaces in its options, to one group and port,
* ignores messages that are longer than 512 bytes, invalid, or name another host than their source address,
* drops an agent 17.5 seconds after its last message,
* keeps at most 4096 agents, 8 of one address, and accepts 100 new ones per second after the first 1024. When it is
  full, the oldest agent that announced itself only once is dropped.

Messages are not authenticated, so discovery changes no records. Administrators register agents: ``auto_add`` selects
those that they allow.

``agent_messages`` checks and bounds everything that agents send. The layers above use its values only.

The package is separate from ``lifecycle``, because cluster tests use agents without partitions and ``lifecycle`` uses
cluster tests. One package for both would create an import cycle.
"""
