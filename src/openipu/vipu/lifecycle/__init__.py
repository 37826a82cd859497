# SPDX-License-Identifier: GPL-3.0-or-later
"""Life of partitions: from a record to configured IPU-Machines, and from their reports to the record.

``service.LifecycleService`` is the entry point. It runs one asyncio event loop in its own thread, with agent
supervision, discovery and cluster tests. The services of the API depend on ``interface`` only.

* ``inbox.Inbox`` passes committed changes from the writer thread to the event loop.
* ``driver.Driver`` receives committed changes and events of agents, and decides what to do.
* ``operations.Operations`` sends the requests of operations to agents, and turns their responses into results.
* ``reported.ReportedShares`` compares the shares that agents report with the records, and ``quarantine.Quarantine``
  keeps others off IPUs of shares that the records do not explain. ``health.PartitionHealth`` records lost and silent
  machines.
* ``recovery.Recovery`` resets and moves failed partitions. ``removals.Removals`` ends the calls that wait for removals.
* ``relocator.Relocator`` moves partitions whose machines are down, as soon as IPUs are free.
* ``reset_clock.ResetClock`` measures the time since automatic resets.
* ``agent_queue.AgentQueue`` sends shares and releases to one agent: one call at a time, with all waiting items.
* ``result_writer.ResultWriter`` writes results as commands of the record writer, many in one command.

Rules:

* Work starts from committed records only. A restart continues from them.
* State transitions are pure functions in ``domain.partition_state``.
* A result counts only while the record that started its operation is still current.
* Nothing may block the event loop. Other threads use the public methods of ``LifecycleService``.

docs/explanation/partition-life.md has all states and transitions.
"""
