# SPDX-License-Identifier: GPL-3.0-or-later
"""The test suites of the project, each with its inputs. No I/O.

A suite fails when it reads a tracked file that is not declared: see ``trace``.
"""

from __future__ import annotations

from collections.abc import Iterable

from .inputs import ARCHIVE, AWX_CONTENT, CLOUD, CONTAINERS, JOBS, OPERATOR, OWN_TWIN, PAGES, PRODUCT
from .machines import MACHINES
from .suite import Suite

SUITES = (
    Suite(
        "test",
        "static checks, unit and integration tests, the bring-up of a twin",
        ("*",),
        460,
        always=True,
        # Two of the tests need network namespaces, one needs IPv6.
        skips=("network namespaces", "virtual Ethernet pairs", "no IPv6"),
    ),
    Suite(
        "test-newcomer",
        "a clone, make bring-up twice, make twin-down",
        (*PRODUCT, "roles/*", "tools/newcomer.sh"),
        60,
        always=True,
        sessions=False,
        excluded=OPERATOR,
    ),
    Suite(
        "test-playbooks",
        "playbooks and tasks in all modes, over both transports",
        (
            *PRODUCT,
            *JOBS,
            "roles/*",
            "tests/playbooks/*",
            "tests/integration/*",
            "tests/unit/collection/pod/*",
            "tests/unit/collection/report/*",
            "tests/unit/vipu/__init__.py",
            "tests/unit/vipu/cluster_test/*",
        ),
        430,
        ignored=ARCHIVE,
        excluded=OPERATOR,
    ),
    Suite(
        "test-docs",
        "the commands of the README, of the tutorials and of other pages, with their output",
        (
            *PRODUCT,
            "requirements/*",
            "roles/*",
            "docs/explanation/placement.md",
            "docs/how-to/cluster-tests.md",
            "docs/how-to/rack-report.md",
            "docs/how-to/rehearsal.md",
            "docs/how-to/switches.md",
            "docs/reference/inventory.md",
            "docs/reference/twin.md",
            "docs/tutorials/*",
            *PAGES,
        ),
        180,
        ignored=("charts/*",),  # copied for the tutorial of Kubernetes only
        excluded=OPERATOR,
    ),
    Suite(
        "test-rehearsal",
        "openipu-pod rehearse from the installed wheel and collection, nothing leaves loopback",
        ("*",),  # it installs an archive of the whole checkout
        240,
    ),
    Suite(
        "test-oldest",
        "the oldest releases that pyproject.toml allows",
        (
            *PRODUCT,
            "requirements/oldest.txt",
            "roles/*",
            "tools/*",
            "tests/awx/*",
            "tests/unit/*",
            "tests/integration/*",
            "tests/playbooks/*",
            "docs/*",
            "extensions/*",
        ),
        180,
        ignored=ARCHIVE,
    ),
    Suite(
        "attack",
        "attacks on controller and agents, each with its defence on and off",
        (
            *PRODUCT,
            "tests/agent_owner.py",
            "tests/attack/*",
            "tests/integration/*",
            "tests/unit/__init__.py",
            "tests/unit/vipu/__init__.py",
            "tests/unit/vipu/domain/*",
            "tests/unit/vipu/storage/*",
        ),
        900,
        excluded=OPERATOR,
    ),
    Suite(
        "test-browser",
        "the rack report in Chromium",
        (
            *PRODUCT,
            "requirements/browser.txt",
            "tests/browser/*",
            "tests/unit/__init__.py",
            "tests/unit/collection/__init__.py",
            "tests/unit/collection/report/*",
            "tests/unit/vipu/__init__.py",
            "tests/unit/vipu/cluster_test/*",
        ),
        30,
        packages=("chromium", "fonts-dejavu-core"),
        excluded=OPERATOR,
    ),
    Suite(
        "test-peers",
        "arista.eos, NAPALM, ANTA, Net-SNMP, Prometheus and a BMC emulator",
        (
            *PRODUCT,
            "requirements/network-clients.txt",
            "requirements/peers.txt",
            "requirements/redfish.txt",
            "tests/peers/*",
            *OWN_TWIN,
            "tests/integration/agents/*",
            "tests/integration/bringup/rack_with_devices.py",
            "tests/integration/bringup/two_pods.py",
            "tests/integration/cli/__init__.py",
            "tests/integration/cli/cli_support.py",
            "tests/integration/eos_switches.py",
            "tests/integration/pdu_agents.py",
            "tests/integration/vipu_servers.py",
            "tests/unit/__init__.py",
            "tests/unit/collection/__init__.py",
            "tests/unit/collection/awx/*",
            "tests/unit/roles/monitoring/exported.yml",
            "roles/monitoring/*",
            "roles/virm_agent/*",
            "extensions/molecule/monitoring/*",
            "docs/how-to/monitoring-alerts.md",
        ),
        100,
        packages=(
            "snmp",
            "jq",
            "openssl",
            "prometheus",
            "prometheus-alertmanager",
            "prometheus-node-exporter",
            "prometheus-snmp-exporter",
            "prometheus-ipmi-exporter",
            "snmpd",
            "openipmi",
        ),
        excluded=OPERATOR,
    ),
    Suite(
        "test-ha",
        "controllers on a real etcd: store, takeover, faults of nodes and controllers",
        (
            *PRODUCT,
            "extensions/eda/plugins/*",
            "roles/etcd/*",
            "tests/earlier_releases/*",
            "tests/events/__init__.py",
            "tests/events/source.py",
            "tests/ha/*",
            "tests/integration/*",
            "tests/unit/__init__.py",
            "tests/unit/collection/__init__.py",
            "tests/unit/collection/pod/*",
            "tests/unit/vipu/__init__.py",
            "tests/unit/vipu/domain/*",
            "tests/unit/vipu/storage/*",
        ),
        560,
        root=True,  # disks of nodes are full and slow
        packages=("etcd-server", "mount", "strace"),
        excluded=OPERATOR,
    ),
    Suite(
        "test-awx",
        "content of an AWX, applied with awx.awx to a stand-in of its API",
        (
            *PRODUCT,
            "requirements/*",
            "roles/*",
            *AWX_CONTENT,
            "tests/awx/*",
            *PAGES,
            "docs/tutorials/control-desk.md",
        ),
        700,
        ignored=ARCHIVE,
        excluded=OPERATOR,
    ),
    Suite(
        "test-ee",
        "the execution environment: content, jobs and inventory sources as AWX runs them",
        (
            *PRODUCT,
            *ARCHIVE,
            "requirements/*",
            "images/*",
            "tests/*",
            "tools/*",
        ),
        1000,
        root=True,
        packages=CONTAINERS,
    ),
    Suite(
        "test-events",
        "ansible-rulebook with the event source, the rulebooks and a twin",
        (
            *PRODUCT,
            *AWX_CONTENT,
            "requirements/rulebook.txt",
            "extensions/eda/*",
            "roles/*",
            "tests/agent_owner.py",
            "tests/awx/*",
            "tests/events/*",
            "tests/integration/*",
            "tests/peers/__init__.py",
            "tests/peers/exporters.py",
            "tests/workflow_jobs.py",
            "docs/how-to/events.md",
            "tools/locks.py",
        ),
        350,
        packages=("openjdk-17-jre-headless", "prometheus-alertmanager"),
        ignored=ARCHIVE,
        excluded=OPERATOR,
    ),
    Suite(
        "test-openstack",
        "a real OpenStack on loopback",
        (
            *PRODUCT,
            *JOBS,
            *PAGES,
            "docs/tutorials/openstack.md",
            "docs/how-to/openstack.md",
            "requirements/openstack.txt",
            "requirements/ironic.txt",
            "requirements/redfish.txt",
            "requirements/kolla.txt",
            "requirements/peers.txt",
            "requirements/peers-openstack.txt",
            "tests/openstack/*",
            *OWN_TWIN,
            "tests/integration/cli/__init__.py",
            "tests/integration/cli/cli_support.py",
            "tests/integration/vipu_servers.py",
            "tools/openstack/*",
            "roles/openstack_*",
            "roles/kolla_config/*",
            "roles/vpod/*",
        ),
        1500,
        root=True,
        packages=CLOUD,
        ignored=("charts/*", "requirements/*", "roles/*"),  # copied for the tutorial only
        before="openstack-down",  # the tests use a running cloud
        excluded=OPERATOR,
    ),
    Suite(
        "test-dashboard",
        "the panel of Horizon in Chromium, with a real OpenStack and a secure V-IPU controller",
        (
            *PRODUCT,
            *JOBS,
            *OWN_TWIN,
            ".gitignore",  # of the build of the package
            "LICENSE",  # the same
            "requirements/browser.txt",
            "requirements/horizon.txt",
            "requirements/openstack.txt",
            "tests/awx/*",
            "tests/dashboard/*",
            "tests/integration/cli/__init__.py",
            "tests/integration/cli/cli_support.py",
            "tests/integration/vipu_servers.py",
            "tests/openstack/*",
            "tools/openstack/*",
            "roles/vpod/*",
        ),
        400,
        root=True,
        packages=(*CLOUD, "chromium", "fonts-dejavu-core"),
        before="openstack-down",  # the tests use a running cloud
        excluded=OPERATOR,
    ),
    *MACHINES,
)


def select_by_name(names: Iterable[str]) -> list[Suite]:
    """Return the suites with these names, in the declared order; all when there are none.

    Raises:
        ValueError: a name is unknown; the message lists the known ones.
    """
    chosen = list(names)
    known = [suite.name for suite in SUITES]
    for name in chosen:
        if name not in known:
            raise ValueError(f"Cannot run suite '{name}': it does not exist. Choose from {', '.join(known)}.")
    return [suite for suite in SUITES if not chosen or suite.name in chosen]
