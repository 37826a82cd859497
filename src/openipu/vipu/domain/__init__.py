# SPDX-License-Identifier: GPL-3.0-or-later
"""Records of a V-IPU controller and the rules for changing them. No I/O.

``model`` has the records of agents, clusters, allocations, partitions and users, and ``State``, which indexes them.
``specs`` has the requests. ``rules.create``, ``rules.upsert``, ``rules.remove`` and ``batch.apply_batch`` are the entry
points: they take a state and a request and return changes. The rules of each kind are in ``agents``, ``clusters``,
``allocations``, ``partitions`` and ``users``. ``placement`` chooses the IPUs of a partition, ``allocation_placement``
the machines of an allocation. ``partition_state`` has the transitions of a partition.

Rules:

* Functions are pure and do not change the state. ``make lint`` rejects imports of I/O libraries.
* Entry points raise ``RuleError`` with a code and a complete message. Inner functions raise ``RuleViolation``, a
  reason without its subject, which the entry points convert.
* A rejected request changes nothing.
* The rules also check every database when it is opened (``invariants``). A stricter rule rejects existing databases.
"""
