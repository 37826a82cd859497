# SPDX-License-Identifier: GPL-3.0-or-later
"""Pages whose commands run in no test of pages, each with the reason."""

from __future__ import annotations

_REAL_RACK = "its pod.yml describes a real rack"
_CLUSTER = "needs a Kubernetes cluster; make test-kubernetes and make test-pods use the chart"
_CLOUD = "needs an OpenStack; make test-openstack runs the playbooks"
_AWX = "needs an AWX; make test-awx runs the playbook"
_HOSTS = "needs hosts with systemd; make test-roles runs the role"
_IMAGE = "builds an image; make test-ee does"
_SERVER = "starts a server that ends with Ctrl-C"

REASONS = {
    "CONTRIBUTING.md": "starts the test suites",
    "charts/ipu-operator/README.md": _CLUSTER,
    "docs/explanation/ownership.md": "needs an agent of another controller",
    "docs/explanation/scaling.md": "needs Prometheus",
    "docs/how-to/awx-apply.md": _AWX,
    "docs/how-to/bare-hosts.md": "creates hosts; make test-bare-hosts is the same run",
    "docs/how-to/bare-metal.md": _CLOUD,
    "docs/how-to/certificates.md": _SERVER,
    "docs/how-to/control-instance.md": _CLOUD,
    "docs/how-to/controller-host.md": _HOSTS,
    "docs/how-to/events.md": "needs ansible-rulebook; make test-events runs the rulebooks",
    "docs/how-to/execution-environment.md": _IMAGE,
    "docs/how-to/high-availability.md": "needs three nodes of etcd",
    "docs/how-to/horizon.md": "needs a Horizon; make test-dashboard installs the panel",
    "docs/how-to/hosts.md": _HOSTS,
    "docs/how-to/ipu-machines.md": _HOSTS,
    "docs/how-to/kubernetes-alerts.md": _CLUSTER,
    "docs/how-to/kubernetes.md": _CLUSTER,
    "docs/how-to/management-server.md": _HOSTS,
    "docs/how-to/monitoring-alerts.md": _HOSTS,
    "docs/how-to/monitoring.md": _HOSTS,
    "docs/how-to/objects.md": _REAL_RACK,
    "docs/how-to/openstack-loopback.md": _CLOUD,
    "docs/how-to/openstack.md": _CLOUD,
    "docs/how-to/out-of-service.md": _REAL_RACK,
    "docs/how-to/poplar-servers.md": _HOSTS,
    "docs/how-to/power.md": _REAL_RACK,
    "docs/how-to/real-rack.md": _REAL_RACK,
    "docs/how-to/several-pods.md": _REAL_RACK,
    "docs/how-to/upgrade.md": "needs a published release",
    "docs/reference/command-lines.md": "each example has its own objects",
    "docs/reference/controller.md": _SERVER,
    "docs/reference/kubernetes-operator.md": _CLUSTER,
    "docs/reference/metrics.md": _REAL_RACK,
    "docs/reference/pod-model.md": "has the mistakes of an example",
    "extensions/awx/README.md": "starts the unit tests",
    "extensions/molecule/README.md": _HOSTS,
    "roles/etcd/README.md": _HOSTS,
    "roles/openipu/README.md": _HOSTS,
    "roles/vipu_server/README.md": _HOSTS,
    "roles/virm_agent/README.md": _HOSTS,
}
"""Pages with commands that are not run, and the reason for each. A block with a mark of its own needs none here."""

ELSEWHERE = {
    "docs/tutorials/control-desk.md": "tests/awx/test_tutorial.py",
    "docs/tutorials/high-availability.md": "tests/ha/test_tutorial.py",
    "docs/tutorials/kubernetes.md": "tests/pods/test_with_tutorial.py",
    "docs/tutorials/openstack.md": "tests/openstack/test_tutorial.py",
}
"""Tutorials that the suite with their parts runs, with the test."""
