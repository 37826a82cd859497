# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubernetes operator for jobs on IPUs.

``domain`` has the rules of an IPUJob as pure functions: the checks of its specification, and the Kubernetes objects
that it needs. The schema of the custom resource is in ``charts/ipu-operator/crds``.
"""
