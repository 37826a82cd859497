# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of the objects of a job, and of its partitions.

A job may have any legal name, up to 253 characters. Names of pods become host names, and values of labels, which have
at most 63. Ids of partitions have the same limit. Longer names are cut, and a hash of the whole name keeps them apart.
"""

from __future__ import annotations

import hashlib

MAX_LENGTH = 63  # of host names, labels and ids of partitions
_HASH_LENGTH = 10

Name = tuple[str, str]
"""Namespace and name of a job."""


def worker(job: str, number: int) -> str:
    """Return the name of a worker. Numbers count through all instances."""
    return _shortened(job, f"-worker-{number}")


def launcher(job: str, instance: int) -> str:
    """Return the name of the launcher of an instance."""
    return _shortened(job, f"-launcher-{instance}" if instance else "-launcher")


def config(job: str, instance: int) -> str:
    """Return the name of the ConfigMap of an instance."""
    return _shortened(job, f"-config-{instance}" if instance else "-config")


def account(job: str) -> str:
    """Return the name of the service account of the launchers, and of their role and its binding."""
    return _shortened(job, "-launcher")


def ssh_keys(job: str, uid: str) -> str:
    """Return the name of the Secret with the SSH keys of a job.

    The UID of the job is part of it. So a Secret with this name is that of the job, and the operator need not read it.
    """
    digest = hashlib.sha256(uid.encode()).hexdigest()[:_HASH_LENGTH]
    return _shortened(job, f"-ssh-{digest}")


def label(job: str) -> str:
    """Return the value of the label that selects the objects of a job."""
    return _shortened(job, "")


def partition(name: Name, instance: int) -> str:
    """Return the id of the partition of an instance.

    Different jobs may have the same id: ``a`` in namespace ``b-c``, and ``a-b`` in namespace ``c``. So an id alone
    does not show to which job a partition belongs.
    """
    namespace, job = name
    return _shortened(f"p-{job}-{namespace}", f"-{instance}")


def unique_partition(name: Name, instance: int, identity: str) -> str:
    """Return an id for a partition whose published id is in use. ``identity`` differs between the jobs with that id."""
    namespace, job = name
    digest = hashlib.sha256(identity.encode()).hexdigest()[:_HASH_LENGTH]
    return _shortened(f"p-{job}-{namespace}", f"-{digest}-{instance}")


def _shortened(text: str, suffix: str) -> str:
    """Return a name of at most ``MAX_LENGTH`` characters that ends with a suffix."""
    if len(text) + len(suffix) <= MAX_LENGTH:
        return text + suffix
    digest = hashlib.sha256(text.encode()).hexdigest()[:_HASH_LENGTH]
    # A label of a DNS name must not end with a dot or a hyphen.
    kept = text[: MAX_LENGTH - len(suffix) - _HASH_LENGTH - 1].rstrip("-.")
    return f"{kept}-{digest}{suffix}"
