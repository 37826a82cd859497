# SPDX-License-Identifier: GPL-3.0-or-later
"""Durable storage of the controller's records.

``writer.RecordWriter`` is the entry point and the only writer. Its thread collects all waiting commands and runs each
one on the working state. It writes their changes in one SQLite transaction, publishes them, and then resolves the
futures of the callers. So an acknowledged change survives ``kill -9``, readers see only durable changes, and
concurrent callers share one flush of the disk.

``interface.RecordStore`` is what the writer needs of a store. ``store`` is the embedded one, a SQLite database, and
``database_file`` its lock. ``rows`` maps records to rows, ``checksums`` detects damaged
ones, ``last_revision`` lost transactions, and ``migrations`` has the versions of the database. ``backup`` creates and
restores archives, with ``replacement``, which a kill cannot interrupt halfway.
``event_log`` numbers the transactions and names the objects that they changed.

Rules:

* A command is a function from the state to changes and a result. It must not block or change the state.
* A new field of a record needs a column in ``rows`` and a migration; never change a released migration.
* A checksum covers all fields of a record. After a migration, the next start computes new ones.
* SQL is written by hand. An object-relational mapper would take more time than the rest of ``CreatePartition``.
"""
