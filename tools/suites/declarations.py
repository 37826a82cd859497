# SPDX-License-Identifier: GPL-3.0-or-later
"""The test suites of the project, each with its inputs. No I/O.

A suite fails when it reads a tracked file that is not declared: see ``trace``.
"""

from __future__ import annotations

from collections.abc import Iterable

from .suite import Suite

PRODUCT = ("src/*", "plugins/*", "playbooks/*", "inventory/*")
# Part of the product that only the tests of Kubernetes and the unit tests run. Other suites only install it.
OPERATOR = ("src/openipu/kubernetes/*",)
# Files that the archive of the collection contains and that no test of an installed collection depends on.
ARCHIVE = (
    "charts/*",
    "docs/*",
    "changelogs/*",
    "extensions/*",
    "LICENSES/*",
    ".*",
    "*.md",
    "*.rst",
    "*.toml",
    "LICENSE",
    "roles/*",
)
# Programs that tools/hosts installs itself when they are missing.
CONTAINERS = ("aardvark-dns", "catatonit", "iproute2", "iptables", "mmdebstrap", "netavark", "podman", "runc")
# Support code of tests that start a twin.
OWN_TWIN = (
    "tests/integration/__init__.py",
    "tests/integration/bringup/__init__.py",
    "tests/integration/bringup/own_twin.py",
)
HOSTS = (
    "tools/hosts/*",
    "tools/guest/*",
    "tools/locks.py",
    "extensions/molecule/*",
    "roles/*",
    "tests/roles/*",
    "tests/playbooks/upgrade/rack_tool.py",
)


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
            "roles/*",
            "tests/playbooks/*",
            "tests/integration/*",
            "tests/unit/__init__.py",
            "tests/unit/collection/__init__.py",
            "tests/unit/collection/awx/*",
            "tests/unit/collection/report/*",
            "tests/unit/vipu/__init__.py",
            "tests/unit/vipu/cluster_test/*",
        ),
        400,
        ignored=ARCHIVE,
        excluded=OPERATOR,
    ),
    Suite(
        "test-oldest",
        "the oldest releases that pyproject.toml allows",
        (
            *PRODUCT,
            "requirements/oldest.txt",
            "roles/*",
            "tools/*",
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
            "docs/how-to/monitoring.md",
        ),
        100,
        packages=(
            "snmp",
            "jq",
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
            "tests/ha/*",
            "tests/integration/*",
            "tests/unit/__init__.py",
            "tests/unit/vipu/__init__.py",
            "tests/unit/vipu/domain/*",
            "tests/unit/vipu/storage/*",
        ),
        480,
        packages=("etcd-server",),
        excluded=OPERATOR,
    ),
    Suite(
        "test-awx",
        "content of an AWX, applied with awx.awx to a stand-in of its API",
        (
            *PRODUCT,
            "requirements/awx.txt",
            "requirements/peers.txt",
            "roles/*",
            "extensions/awx/*",
            "tests/awx/*",
        ),
        500,
        ignored=ARCHIVE,
        excluded=OPERATOR,
    ),
    Suite(
        "test-ee",
        "the execution environment: content, jobs and inventory sources as AWX runs them",
        (
            *PRODUCT,
            "requirements/ee-tools.txt",
            "requirements/helm.txt",
            "charts/*",
            "docs/*",
            "changelogs/*",
            "extensions/*",
            "images/*",
            "roles/*",
            "LICENSES/*",
            ".*",
            "*.md",
            "*.rst",
            "*.toml",
            "LICENSE",
            "tests/ee/*",
            "tests/event_loop.py",
            "tests/waiting.py",
            "tests/integration/vipu_servers.py",
            "tests/unit/__init__.py",
            "tests/unit/collection/__init__.py",
            "tests/unit/collection/awx/*",
            *OWN_TWIN,
            "tools/ee/*",
            "tools/hosts/*",
            "tools/kubernetes/*",
            "tools/locks.py",
        ),
        500,
        root=True,
        packages=("mmdebstrap", "podman", "runc"),
    ),
    Suite(
        "test-events",
        "ansible-rulebook with the event source, the rulebooks and a twin",
        (
            *PRODUCT,
            "requirements/rulebook.txt",
            "extensions/eda/*",
            "roles/*",
            "tests/events/*",
            "tests/integration/*",
            "tools/locks.py",
        ),
        300,
        packages=("openjdk-17-jre-headless",),
        ignored=ARCHIVE,
        excluded=OPERATOR,
    ),
    Suite(
        "test-openstack",
        "a real OpenStack on loopback",
        (
            *PRODUCT,
            "requirements/openstack.txt",
            "requirements/kolla.txt",
            "requirements/peers.txt",
            "requirements/peers-openstack.txt",
            "tests/openstack/*",
            *OWN_TWIN,
            "tests/integration/cli/__init__.py",
            "tests/integration/cli/cli_support.py",
            "tests/integration/vipu_servers.py",
            "tools/locks.py",
            "tools/openstack/*",
            "roles/openstack_*",
            "roles/kolla_config/*",
        ),
        1500,
        root=True,
        packages=(
            "mariadb-server",
            "rabbitmq-server",
            "openvswitch-switch",
            "dnsmasq-base",
            "iproute2",
            "iptables",
            "ethtool",
            "udhcpc",
            "bind9-dnsutils",
        ),
        before="openstack-down",  # the tests use a running cloud
        excluded=OPERATOR,
    ),
    Suite(
        "test-kubernetes",
        "the IPU operator with a real Kubernetes API server",
        (
            *PRODUCT,
            "requirements/helm.txt",
            "charts/*",
            "images/*",
            "tests/integration/__init__.py",
            "tests/integration/vipu_servers.py",
            "docs/reference/kubernetes.md",  # part of the package
            "docs/how-to/kubernetes-alerts.md",
            "roles/ipu_operator/*",
            "tests/kubernetes/*",
            "tests/unit/__init__.py",
            "tests/unit/kubernetes/*",
            "tools/hosts/*",
            "tools/kubernetes/*",
            "tools/locks.py",
        ),
        750,  # with the build of Kubernetes
        packages=("etcd-server", "openmpi-bin", "openssh-client", "openssh-server"),
    ),
    Suite(
        "test-pods",
        "the IPU operator with real pods on a node with kubelet and containerd",
        (
            *PRODUCT,
            "requirements/helm.txt",
            "charts/*",
            "images/*",
            "tests/integration/__init__.py",
            "tests/integration/vipu_servers.py",
            "tests/kubernetes/__init__.py",
            "tests/kubernetes/cluster.py",
            "tests/kubernetes/hollow.py",
            "tests/kubernetes/releases.py",
            "tests/kubernetes/roles.py",
            "tests/kubernetes/examples/*",
            "roles/ipu_operator/*",
            "tests/pods/*",
            "tools/hosts/*",
            "tools/kubernetes/*",
            "tools/locks.py",
        ),
        1700,  # with the build of Kubernetes and of the images
        root=True,
        packages=(
            "etcd-server",
            "conntrack",
            "containerd",
            "containernetworking-plugins",
            "dnsmasq-base",
            "docker-registry",
            "ethtool",
            "iproute2",
            "iptables",
            "mmdebstrap",
            "podman",
            "runc",
        ),
        ignored=ARCHIVE,
    ),
    Suite(
        "test-roles",
        "Molecule scenarios on systemd hosts, but for the emulated guest",
        (*PRODUCT, *HOSTS, "requirements/*"),
        1300,
        root=True,
        packages=CONTAINERS,
        variables=("ROLE=not poplar_server",),
        ignored=ARCHIVE,
        excluded=OPERATOR,
    ),
    Suite(
        "test-poplar-server",
        "the scenario of poplar_server in an emulated guest",
        (*PRODUCT, *HOSTS, "requirements/*"),
        900,
        root=True,
        packages=CONTAINERS,
        ignored=ARCHIVE,
        variables=("ROLE=poplar_server",),
        excluded=OPERATOR,
    ),
    Suite(
        "rack-rehearsal",
        "site.yml from bare hosts to a monitored rack",
        (*PRODUCT, *HOSTS, "tools/rehearsal/*", "requirements/*"),
        420,
        root=True,
        packages=CONTAINERS,
        ignored=ARCHIVE,
        sessions=False,
        excluded=OPERATOR,
    ),
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
