# SPDX-License-Identifier: GPL-3.0-or-later
"""Operator for Kubernetes: IPUJobs on the partitions of V-IPU controllers.

``operator`` runs jobs, ``proxy`` reserves their partitions, and ``launcher`` prepares the launcher of a job. They use
``cluster``, the access to the API server, ``serving``, their HTTP servers, and ``domain``, the rules without I/O.
"""
