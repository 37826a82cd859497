# SPDX-License-Identifier: GPL-3.0-or-later
"""Access to the Kubernetes API server: requests, caches of objects, a work queue, and the lease of the leader."""
