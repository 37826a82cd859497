# SPDX-License-Identifier: GPL-3.0-or-later
"""Rack twin: the devices of a POD as processes on loopback, with fault injection at run time.

``cli`` is the program ``twin``. ``launch`` starts two processes: the rack (``rack``) and a real controller. The rack
process has all IPU-Machines (``machine``) with their agents, the cables between them (``cables``), and the switches and
PDUs (``devices``).

Rules:

* The twin implements only hardware: ``openipu.vipu.agent.hardware``, eAPI and SNMP. Agents, controller and command
  lines are the real ones.
* Faults change the state of cables, machines or devices only. The software under test must find their effects.
"""
