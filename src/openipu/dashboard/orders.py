# SPDX-License-Identifier: GPL-3.0-or-later
"""Orders of vPODs: choices of the survey, checks against quotas, and orders of one tenant. No I/O."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from openipu.shared.reconcile import UserError
from openipu.shared.vipu.object_rules import ID_RULE, IPUS_PER_MACHINE, is_valid_id

IPUS = "ipus"  # name of the quota of the team

# Words for the status of a job of AWX.
_WORDS = {
    "new": "Waiting",
    "pending": "Waiting",
    "waiting": "Waiting",
    "running": "In progress or waiting for approval",
    "successful": "Done",
    "failed": "Failed",
    "error": "Failed",
    "canceled": "Cancelled",
}
PROJECT_ID = "vpod_tenant_id"  # names of projects are unique in one domain only, and are used again
UNFINISHED = ("new", "pending", "waiting", "running")  # as AWX names them
_ENDED = ("Done", "Failed", "Cancelled")


class OrderError(UserError):
    """Raised when an order or a release cannot be launched."""


@dataclass(frozen=True)
class Survey:
    """Choices of the survey of the workflow."""

    ipus: Sequence[str]
    images: Sequence[str]
    flavors: Sequence[str]


@dataclass(frozen=True)
class Order:
    """Job of AWX that creates or destroys a vPOD."""

    id: int
    action: str
    vpod: str
    ipus: str
    status: str
    created: str
    flavor: str = ""

    @property
    def ended(self) -> bool:
        """Return whether the job has ended."""
        return self.status in _ENDED


@dataclass(frozen=True)
class Flavor:
    """Flavor of Nova; ``ram`` is in MB."""

    vcpus: int
    ram: int


@dataclass(frozen=True)
class Usage:
    """Quota of a project and its use; ``limit`` is None without a limit."""

    limit: int | None
    used: int


def survey(spec: Mapping[str, Any]) -> Survey:
    """Return the choices of a survey of AWX. Raises OrderError."""
    questions = _questions(spec)
    found = []
    for variable in ("vpod_ipus", "vpod_image", "vpod_flavor"):
        choices = questions.get(variable, {}).get("choices") or ()
        found.append(tuple(choices.splitlines() if isinstance(choices, str) else choices))
        if not found[-1]:
            raise OrderError(
                f"Cannot order a vPOD: the survey of AWX has no choices for {variable}. Run the playbook awx.yml again."
            )
    _verify_project_id(questions, "order")
    return Survey(*found)


def verify_release(spec: Mapping[str, Any]) -> None:
    """Verify that a survey of AWX accepts the id of the project of a release. Raises OrderError."""
    _verify_project_id(_questions(spec), "release")


def _questions(spec: Mapping[str, Any]) -> dict[Any, Mapping[str, Any]]:
    """Return the questions of a survey of AWX by variable."""
    return {question.get("variable"): question for question in spec.get("spec", ())}


def _verify_project_id(questions: Mapping[Any, Any], action: str) -> None:
    """Verify that a survey asks for the id of the project. AWX would launch the job without it."""
    if PROJECT_ID not in questions:
        raise OrderError(
            f"Cannot {action} a vPOD: the survey of AWX does not ask for {PROJECT_ID}. Run the playbook awx.yml again."
        )


def name_error(name: str, used: Iterable[str]) -> str | None:
    """Return why a vPOD cannot have a name, as a message; None if it can."""
    if not is_valid_id(name):
        return f"Cannot order a vPOD with this name: it must have {ID_RULE}."
    if name in used:
        return f"Cannot order vPOD '{name}': this project has one of this name. Choose another name."
    return None


def ports(tenant: Mapping[str, Any]) -> int:
    """Return the number of ports of a Poplar VM: data, control and, if the tenant has one, storage network."""
    return 3 if tenant.get("storage") else 2


def occupied(ipus: str | int) -> int:
    """Return the IPUs of the IPU-Machines of a vPOD of this size. 0 for text that is not a number."""
    size = int(ipus) if str(ipus).isdecimal() else 0
    return -(-size // IPUS_PER_MACHINE) * IPUS_PER_MACHINE


def quota_errors(flavors: Sequence[Flavor], usages: Mapping[str, Usage], ports: int, ipus: int) -> list[str]:
    """Return the quotas that Poplar VMs of these flavors exceed, one VM each, as clauses.

    ``usages``: by name of the quota. Quotas that a service does not report are not compared. ``ports``: of one VM.
    ``ipus``: of all VMs.
    """
    needed = {
        "instances": (len(flavors), "VM"),
        "cores": (sum(flavor.vcpus for flavor in flavors), "vCPU"),
        "ram": (sum(flavor.ram for flavor in flavors), "MB of memory"),
        "port": (ports * len(flavors), "port"),
        IPUS: (ipus, "IPU"),
    }
    pending = f" with {len(flavors) - 1} pending" if len(flavors) > 1 else ""
    return [
        f"it needs {_count(*needed[name])} more{pending} (quota {usages[name].limit}, used {usages[name].used})"
        for name in needed
        if name in usages and _exceeds(usages[name], needed[name][0])
    ]


def _count(number: int, unit: str) -> str:
    return f"{number} {unit}" if number == 1 or " " in unit else f"{number} {unit}s"


def _exceeds(usage: Usage, number: int) -> bool:
    return usage.limit is not None and usage.used + number > usage.limit


def of_project(jobs: Iterable[tuple[str, Mapping[str, Any]]], project: str) -> list[Order]:
    """Return the orders of the project with this id, newest first. Orders without an id of a project are of none.

    ``jobs``: their action, and the jobs as AWX returns them.
    """
    return _orders(jobs, lambda id, _name: bool(id) and id == project)


def unfinished(jobs: Iterable[tuple[str, Mapping[str, Any]]], project: str, project_name: str) -> list[Order]:
    """Return the unfinished orders that may be of a project: those with its id, and those with its name and no id.

    ``jobs``: as for of_project.
    """
    found = _orders(jobs, lambda id, name: id == project if id else bool(name) and name == project_name)
    return [order for order in found if not order.ended]


def _orders(jobs: Iterable[tuple[str, Mapping[str, Any]]], is_selected: Callable[[str, str], bool]) -> list[Order]:
    """Return the orders whose id and name of the project are selected, newest first."""
    found = []
    for action, job in jobs:
        variables = _variables(job.get("extra_vars"))
        if not is_selected(*(str(variables.get(key) or "") for key in (PROJECT_ID, "vpod_tenant"))):
            continue
        status = _WORDS.get(str(job.get("status")), str(job.get("status")))
        name, ipus, flavor = (str(variables.get(f"vpod_{name}", "")) for name in ("name", "ipus", "flavor"))
        found.append(Order(int(job["id"]), action, name, ipus, status, str(job.get("created") or ""), flavor))
    return sorted(found, key=lambda order: order.id, reverse=True)


def _variables(text: Any) -> Mapping[str, Any]:
    """Return the variables of a job, which AWX returns as JSON."""
    try:
        value = json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return {}
    return value if isinstance(value, Mapping) else {}
