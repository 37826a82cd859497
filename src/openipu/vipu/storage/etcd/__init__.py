# SPDX-License-Identifier: GPL-3.0-or-later
"""Records in etcd, for controllers that take over from each other.

``election.Leadership`` is the right to write: a key with a lease, which one controller at a time has. ``store`` has the
transactions of the leader. Each one compares the leader key and the last transaction, so a former leader that was
paused cannot write. ``mirror.Mirror`` is the copy of the records that followers keep up to date by watch.
``client`` calls the nodes of etcd, and goes on to another node when one does not respond. ``content`` reads and
replaces all records, for backups and migrations.

Keys, below a prefix:

* ``leader``: addresses of the leading controller, with its lease
* ``meta``: version of this format, id of the deployment, epoch
* ``head``: last revision, sum of all checksums, the staged transaction, token of the leader that wrote it
* ``records/<kind>/<id>``: a record with its checksum
* ``revisions/<revision>/<part>``: objects that the revision changed
* ``staged/<transaction>/<part>``: operations of a large transaction

etcd limits a transaction to 128 operations and 1.5 MiB. A larger one is staged: its operations are written as parts,
the change of ``head`` commits them, and then they are executed. A new leader completes what its predecessor committed.
Parts have the name of their transaction, so those of one that was not committed have no effect.

Rules:

* Every write compares the leader key and the ``head`` that the writer knows. So a request that etcd executes late, or
  twice, has no effect.
* Only messages and stubs of ``aetcd`` are used. Its import takes a second, so nothing outside of this package imports
  it at the start.
* A change of the format needs a new ``keys.VERSION``, and code that reads the previous one. The new version is written
  no later than the first value in the new form. Readers check the version first, so they never report such values as
  damage.
"""
