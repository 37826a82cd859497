# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of IPUJobs, without I/O. Objects of Kubernetes are dictionaries, as in JSON.

Start with ``job``: the other modules receive its ``Job``.
"""
