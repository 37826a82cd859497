# SPDX-License-Identifier: GPL-3.0-or-later
"""Pages of all messages of modules, roles, playbooks and programs, from their code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tools.messages import messages

from .markdown import page, table

_ROOT = Path(__file__).resolve().parents[2]
_REMEDY = re.compile(r"(?<=[\w)'…])\. (?=[A-Z])")
# A mistake in a file has its remedy after the last colon. In a text with "Cannot", that is the cause.
_MISTAKE = re.compile(r"(?P<mistake>(?!Cannot )\S+(?: \S+){2,}): (?P<remedy>(?!it is )[a-z](?:(?!: |').|'[^']*')+)")


class Area(NamedTuple):
    """One page: its name, title, readers, and sections with their folders and files."""

    name: str
    title: str
    readers: str
    sections: dict[str, tuple[str, ...]]


AREAS = (
    Area(
        "devices",
        "Messages of switches, PDUs and BMCs",
        "administrators of the devices of a rack. [Switches](../../how-to/switches.md), "
        "[power](../../how-to/power.md) and [IPU-Machines](../../how-to/ipu-machines.md) describe their configuration",
        {
            "Switches": ("plugins/module_utils/eos",),
            "PDUs": ("plugins/module_utils/pdu",),
            "BMCs": ("plugins/module_utils/redfish.py",),
            "Upgrades and health of IPU-Machines": ("plugins/module_utils/rolling_upgrade.py", "roles/virm_agent"),
        },
    ),
    Area(
        "hosts",
        "Messages of roles on hosts",
        "administrators of servers. [Hosts](../../how-to/hosts.md) describes the roles",
        {
            "All hosts": (
                "roles/common",
                "roles/packages",
                "roles/time",
                "roles/log_receiver",
                "plugins/module_utils/host",
            ),
            "Management server": ("roles/management_server", "plugins/module_utils/pod/dhcp_dns.py"),
            "Controllers": ("roles/vipu_server", "roles/openipu", "roles/etcd"),
            "Poplar servers and users": ("roles/poplar_server", "roles/vipu_client"),
            "Monitoring": ("roles/monitoring",),
        },
    ),
    Area(
        "openstack",
        "Messages of OpenStack and vPODs",
        "administrators of an OpenStack with IPUs, and their tenants. "
        "[OpenStack](../../how-to/openstack.md) describes the modules and roles",
        {
            "vPODs": ("roles/vpod", "roles/control_instance", "playbooks/vpod_*"),
            "Modules and roles of OpenStack": ("plugins/module_utils/openstack", "roles/openstack_*"),
            "Kolla Ansible": ("roles/kolla_config",),
            "Panel of Horizon": ("src/openipu/dashboard",),
        },
    ),
    Area(
        "kubernetes",
        "Messages of the IPU operator",
        "administrators and users of a Kubernetes cluster with IPUs. "
        "[IPU operator](../../how-to/kubernetes.md) describes its installation",
        {
            "Role `ipu_operator`": ("roles/ipu_operator",),
            "Operator, proxy, webhooks and launcher": ("src/openipu/kubernetes",),
        },
    ),
    Area(
        "controller",
        "Messages of modules and commands of V-IPU",
        "administrators and users of a V-IPU controller. [Command lines](../command-lines.md) describes `vipu` and "
        "`vipu-admin`",
        {
            "Modules": ("plugins/module_utils/vipu",),
            "Command lines": ("src/openipu/vipu/cli",),
            "Rules of objects": tuple(f"src/openipu/vipu/{each}" for each in ("domain", "lifecycle", "cluster_test")),
        },
    ),
    Area(
        "programs",
        "Messages of `vipu-server` and `virm-agent`",
        "administrators who run a V-IPU controller. [Controller and agent](../controller.md) describes the programs",
        {
            "Service and agents": ("src/openipu/vipu/api", "src/openipu/vipu/fleet", "src/openipu/vipu/agent*"),
            "Programs, options and certificates": (
                "src/openipu/vipu/server",
                "src/openipu/vipu/tls",
                "src/openipu/process",
            ),
            "Database, etcd, backup": ("src/openipu/vipu/storage", "src/openipu/vipu/metrics"),
        },
    ),
    Area(
        "pod",
        "Messages about the POD",
        "administrators who write `pod.yml`, run the playbooks of the collection, or use a twin. "
        "[POD model](../pod-model.md) describes the files",
        {
            "`pod.yml` and `machines.csv`": ("plugins/module_utils/pod", "plugins/inventory"),
            "Playbooks": ("playbooks",),
            "Rack report and other modules": ("plugins/module_utils/*.py", "plugins/module_utils/report"),
            "Plug-ins of Ansible": (
                "plugins/action",
                "plugins/callback",
                "plugins/filter",
                "plugins/lookup",
                "plugins/modules",
                "plugins/plugin_utils/*.py",
            ),
            "AWX": ("plugins/plugin_utils/awx", "roles/awx_content"),
            "Twin and rehearsal": ("src/openipu/twin/[a-ce-z]*", "src/openipu/pod_files"),
        },
    ),
)
_INTRODUCTION = """
This page is for {readers}. It lists the messages of errors, in alphabetical order. In the messages, `…` is a value. A
value can contain the cause, which is then a message of its own. The second column has the remedy, if the message
states one.

For the most common ones, [troubleshooting](../../how-to/troubleshooting.md) has more about causes and remedies.
[Error codes](../errors.md) are for programs.
"""


def pages() -> dict[str, str]:
    """Return the pages of messages, by their paths in docs/reference."""
    taken: set[Path] = set()
    return {
        f"messages/{area.name}.md": page(
            area.title,
            _INTRODUCTION.format(readers=area.readers),
            (part for title, places in area.sections.items() for part in _section(title, places, taken)),
        )
        for area in AREAS
    }


def _section(title: str, places: tuple[str, ...], taken: set[Path]) -> Iterator[str]:
    """Yield the heading and the table of the messages in files that no earlier section has."""
    new = sorted(set(files(places)) - taken)
    taken.update(new)
    found = sorted({text for file in new for text in messages(file)}, key=lambda text: text.strip("…: '").lower())
    if found:
        yield f"## {title}"
        yield table(("Message", "Remedy"), map(_row, found))


def files(places: tuple[str, ...]) -> Iterator[Path]:
    """Yield the files of Python and YAML in these folders and files."""
    for place in places:
        for path in _ROOT.glob(place):
            for file in [path] if path.is_file() else path.rglob("*"):
                if file.suffix in (".py", ".yml") and file.name not in ("contract.py", "argument_specs.yml"):
                    yield file


def _row(message: str) -> tuple[str, str]:
    """Return a message and its remedy: what follows the first sentence, or else the last colon of a mistake."""
    sentence, _, remedy = _REMEDY.sub("\n", message, 1).partition("\n")
    if not remedy and (mistake := _MISTAKE.fullmatch(sentence)):
        sentence, remedy = mistake["mistake"], mistake["remedy"]
    return f"`{sentence.removesuffix('.')}`", re.sub(r"([*<\[])", r"\\\1", remedy)
