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
_REMEDY = re.compile(r"(?<=[\w)\]'…])\. (?=[A-Z]|…[ ,](?!…))")
# A mistake in a file has its remedy after the last colon. In a text with "Cannot", that is the cause.
_MISTAKE = re.compile(r"(?P<mistake>(?!Cannot )\S+(?: \S+){2,}): (?P<remedy>(?!it is )[a-z](?:(?!: |').|'[^']*')+)")
_CLAUSE = re.compile(r"; (?=[a-z])|(?::|, so) (?=(?:add|check|choose|give|remove|set|use|write) )")
_AFTER_VALUE = re.compile(r"(?<=…) (?=(?:Check|Fix|Repair|Restore|Run|See|Set|Then) )")
_STATED = re.compile(r"(?:Choose|Give|Name) .*|.*\b(?:must|needs?|requir\w+|at least|at most|belong|excludes)\b.*")
_VALUE_AT_END = re.compile(r".*(?:[:;,.]|: it|: it is|…) ?…+\.?")
_CAUSE = re.compile(r"[a-z…']")
# Here, texts that begin like a cause are complete: only the file with its line, or the object, precedes them.
_COMPLETE = ("plugins/module_utils/pod/", "src/openipu/pod_files/variable", "src/openipu/vipu/domain/")
# Here, whole sentences are causes: faults of records and partitions, and findings of cluster tests.
_CAUSES = tuple(
    f"src/openipu/vipu/{each}" for each in ("domain/invariants.py", "storage/", "lifecycle/", "cluster_test/")
)


class Area(NamedTuple):
    """One page: its name, title, readers, and sections with their folders and files."""

    name: str
    title: str
    readers: str
    sections: dict[str, tuple[str, ...]]


class Row(NamedTuple):
    """A message and its remedy, which is empty for a cause inside other messages."""

    message: str
    remedy: str
    is_cause: bool
    place: str  # file and line


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
            "`pod.yml` and `machines.csv`": (
                "plugins/module_utils/pod",
                "plugins/module_utils/text_syntax.py",
                "plugins/inventory",
            ),
            "Variables, and warnings of `openipu-pod validate`": tuple(
                f"src/openipu/pod_files/{each}.py" for each in ("variables", "variable_values", "warnings")
            ),
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
value can be a cause, which is then a text of its own. The causes without a remedy follow in a table of their own: a
message around them states the remedy.

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
    """Yield the heading and the tables of the messages in files that no earlier section has."""
    new = sorted(set(files(places)) - taken)
    taken.update(new)
    found = {(row.message, row.remedy, row.is_cause) for file in new for row in rows(file)}
    if found:
        ordered = sorted(found, key=lambda row: (row[0].strip("…: '").lower(), row))
        yield f"## {title}"
        yield table(
            ("Message", "Remedy"), ((f"`{message}`", remedy) for message, remedy, cause in ordered if not cause)
        )
        yield table(("Cause in other messages",), ((f"`{message}`",) for message, _, cause in ordered if cause))


def files(places: tuple[str, ...]) -> Iterator[Path]:
    """Yield the files of Python and YAML in these folders and files, and the scripts and templates of roles."""
    for place in places:
        for path in _ROOT.glob(place):
            for file in [path] if path.is_file() else path.rglob("*"):
                if file.name not in ("contract.py", "argument_specs.yml") and _is_read(file):
                    yield file


def _is_read(file: Path) -> bool:
    in_role = not {"files", "templates"}.isdisjoint(file.parts) and file.is_file()
    return file.suffix in (".py", ".yml") or (in_role and file.suffix in ("", ".j2", ".sh"))


def rows(file: Path) -> Iterator[Row]:
    """Yield a row for each message in a file."""
    place = file.relative_to(_ROOT).as_posix()
    for text, line in messages(file).items():
        yield row(text, f"{place}:{line}")


def row(text: str, place: str) -> Row:
    """Return the row of a message, without a remedy if nothing in the message says what to do."""
    message, remedy = _parts(text)
    is_cause = not remedy and _is_cause(text, place)
    if not remedy and not is_cause:
        remedy = _stated(text)
    return Row(message.removesuffix("."), re.sub(r"([*<\[])", r"\\\1", remedy), is_cause, place)


def _is_cause(text: str, place: str) -> bool:
    if text.startswith("Cannot "):
        return False
    return place.startswith(_CAUSES) or (not place.startswith(_COMPLETE) and bool(_CAUSE.match(text)))


def _parts(text: str) -> tuple[str, str]:
    """Return a message and its remedy: what follows the first sentence, or else the last colon of a mistake."""
    found = _REMEDY.search(text) or _MISTAKE.fullmatch(text) or _AFTER_VALUE.search(text) or _CLAUSE.search(text)
    if not found:
        return text, ""
    if found.re is _MISTAKE:
        return found["mistake"], found["remedy"]
    return text[: found.start()], text[found.end() :]


def _stated(text: str) -> str:
    """Return where a message without a sentence about the remedy states it. Empty if nowhere."""
    if _VALUE_AT_END.fullmatch(text):
        return "See the end of the message."
    return "The message states it." if _STATED.fullmatch(text) else ""
