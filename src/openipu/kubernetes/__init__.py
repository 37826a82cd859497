# SPDX-License-Identifier: GPL-3.0-or-later
"""Operator for Kubernetes: IPUJobs on the partitions of V-IPU controllers.

``operator`` runs jobs and serves the ``webhooks``, ``proxy`` reserves partitions, and ``launcher`` prepares launchers
and plain pods. They use ``cluster``, the access to the API server, ``serving``, their HTTP servers, ``options``, and
``domain``, the rules without I/O.
"""
