# SPDX-License-Identifier: GPL-3.0-or-later
"""Pages whose commands run in no test of pages, each with the reason."""

from __future__ import annotations

REASONS = {
    "docs/how-to/bare-hosts.md": "creates hosts; make test-bare-hosts is the same run",
    "extensions/awx/README.md": "starts the unit tests",
    "extensions/molecule/README.md": "starts make test-roles",
    "roles/virm_agent/README.md": "needs rack_tool; make test-roles runs the playbook with a substitute",
}
"""Pages with commands that are not run, and the reason for each. A block with a mark of its own needs none here."""

ELSEWHERE = {
    "charts/ipu-operator/README.md": "tests/kubernetes/test_pages.py",
    "docs/explanation/scaling.md": "tests/peers/test_scaling_page.py",
    "docs/how-to/awx-apply.md": "tests/awx/test_apply_page.py",
    "docs/how-to/bare-metal.md": "tests/openstack/test_site_pages.py",
    "docs/how-to/control-instance.md": "tests/control_instance/test_vm.py",
    "docs/how-to/controller-host.md": "tests/roles/test_pages.py",
    "docs/how-to/events.md": "tests/events/test_page.py",
    "docs/how-to/execution-environment.md": "tests/ee/test_page.py",
    "docs/how-to/high-availability.md": "tests/ha/test_pages.py",
    "docs/how-to/horizon.md": "tests/openstack/test_site_pages.py",
    "docs/how-to/hosts.md": "tests/roles/test_pages.py",
    "docs/how-to/kubernetes-alerts.md": "tests/kubernetes/test_pages.py",
    "docs/how-to/kubernetes.md": "tests/kubernetes/test_pages.py",
    "docs/how-to/management-server.md": "tests/roles/test_pages.py",
    "docs/how-to/monitoring.md": "tests/roles/test_pages.py",
    "docs/how-to/openstack-loopback.md": "tests/openstack/test_pages.py",
    "docs/how-to/openstack.md": "tests/openstack/test_site_pages.py",
    "docs/how-to/poplar-servers.md": "tests/roles/test_pages.py",
    "docs/reference/kubernetes-operator.md": "tests/kubernetes/test_pages.py",
    "docs/tutorials/control-desk.md": "tests/awx/test_tutorial.py",
    "docs/tutorials/high-availability.md": "tests/ha/test_tutorial.py",
    "docs/tutorials/kubernetes.md": "tests/pods/test_with_tutorial.py",
    "docs/tutorials/openstack.md": "tests/openstack/test_pages.py",
    "roles/etcd/README.md": "tests/ha/test_pages.py",
    "roles/openipu/README.md": "tests/roles/test_pages.py",
    "roles/vipu_server/README.md": "tests/roles/test_pages.py",
}
"""Pages that the suite with their parts runs, with the test."""
