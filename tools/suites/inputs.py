# SPDX-License-Identifier: GPL-3.0-or-later
"""Shared inputs and Debian packages of several suites. No I/O."""

from __future__ import annotations

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
# Programs of an OpenStack with a network node.
CLOUD = (
    "mariadb-server",
    "rabbitmq-server",
    "openvswitch-switch",
    "dnsmasq-base",
    "iproute2",
    "iptables",
    "ethtool",
    "udhcpc",
    "bind9-dnsutils",
)
# Support code of tests that start a twin.
OWN_TWIN = (
    "tests/integration/__init__.py",
    "tests/integration/bringup/__init__.py",
    "tests/integration/bringup/own_twin.py",
)
# Support code of tests that run the commands of a page in a copy of the checkout.
PAGES = ("tests/docs/*", ".gitignore", "tools/documentation/*", "tools/links.py")
# The content of AWX, and its checks.
AWX_CONTENT = (
    "extensions/awx/*",
    "tests/unit/__init__.py",
    "tests/unit/collection/__init__.py",
    "tests/unit/collection/awx/*",
)
# Support code of tests that run jobs of AWX on this machine.
JOBS = (
    *AWX_CONTENT,
    "requirements/ee-tools.txt",
    "tests/workflow_jobs.py",
    "tools/ee/*",
    "tools/hosts/*",
    "tools/archives.py",
    "tools/kubernetes/*",
    "tools/locks.py",
)
GUEST = ("tools/hosts/*", "tools/guest/*", "tools/locks.py")
HOSTS = (
    *GUEST,
    "extensions/molecule/*",
    "roles/*",
    "tests/roles/*",
    "tests/playbooks/upgrade/rack_tool.py",
)
