# SPDX-License-Identifier: GPL-3.0-or-later
"""Access of tenants and operators: visible objects and allowed changes.

Tenants get no messages of other services, which can contain addresses and paths. The log of the web server has them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from openipu.dashboard import awx, controller, orders, ownership, settings
from openipu.dashboard.controller import ControllerError
from openipu.dashboard.orders import Flavor, Order, OrderError, Usage
from openipu.dashboard.ownership import Object, Objects, Project, Vpod
from openipu.dashboard.settings import SettingsError

_log = logging.getLogger(__name__)


class Cloud(Protocol):
    """OpenStack as one token may use it."""

    @property
    def project_id(self) -> str:
        """Id of the project of the token."""

    @property
    def domain_id(self) -> str:
        """Id of the domain of the project."""

    @property
    def roles(self) -> list[str]:
        """Names of the roles of the token."""

    @property
    def project(self) -> Project:
        """Project of the token with the records of its vPODs."""

    def projects(self) -> list[Project]:
        """Return all projects."""

    def allows_changes(self) -> bool:
        """Return whether the policy allows to create and delete servers."""

    def flavors(self) -> dict[str, Flavor]:
        """Return the flavors by name."""

    def keys(self) -> dict[str, str]:
        """Return the SSH keys of the user by name."""

    def usages(self) -> dict[str, Usage]:
        """Return the quotas of the project and their use by name."""


@contextmanager
def _withheld(error: type[Exception], message: str) -> Iterator[None]:
    """Log the message of an error, and raise one that tenants may see."""
    try:
        yield
    except error as raised:
        _log.warning("%s", raised)
        raise error(message) from None


def _controller_errors() -> Any:
    return _withheld(ControllerError, "Cannot use the V-IPU controller. Try again, or ask the operator of the POD.")


def _order_errors() -> Any:
    return _withheld(OrderError, "Cannot use the service for orders. Try again, or ask the operator of the POD.")


def tenant(setting: object, cloud: Cloud) -> Tenant:
    """Return the access of a token to its project. Raises SettingsError without details."""
    with _withheld(SettingsError, "This panel is not configured correctly. Ask the operator of the POD."):
        return Tenant(settings.parse(setting), cloud)


def _is_there(file: Path | None) -> bool:
    """Return whether a file exists. Raises ControllerError if that cannot be read."""
    try:
        return file is not None and bool(file.stat())
    except FileNotFoundError:
        return False
    except OSError as error:
        raise ControllerError(f"Cannot read {file}: {error.strerror}. Correct its owner and mode.") from None


class Tenant:
    """Access to the objects of the project of a token."""

    def __init__(self, setting: settings.Settings, cloud: Cloud) -> None:
        self.settings = setting
        self._cloud = cloud

    @property
    def project(self) -> Project:
        """Project with the records of its vPODs."""
        return self._cloud.project

    @cached_property
    def may_change(self) -> bool:
        """Right to make changes: one of the roles, and a policy that allows to create and delete servers."""
        allowed = {role.lower() for role in self.settings.roles}
        return not allowed.isdisjoint(role.lower() for role in self._cloud.roles) and self._cloud.allows_changes()

    @property
    def may_order(self) -> bool:
        """Return whether the user can order and release vPODs."""
        found = self.settings.awx
        return found is not None and self._cloud.domain_id == found.domain and self.may_change

    @cached_property
    def objects(self) -> Objects:
        """Allocations and partitions of the project. Raises ControllerError."""
        file = self._file()
        with _controller_errors():
            return ownership.owned(self.project, controller.read(file))

    @cached_property
    def ipu_usage(self) -> Usage | None:
        """Quota of the team of the project in IPUs, and the IPUs of its vPODs and orders. None without a quota.

        Raises ControllerError.
        """
        found = self.settings.awx
        # Teams have names of projects, which are unique in one domain only.
        foreign = found is not None and self._cloud.domain_id != found.domain
        quota = None if foreign else self.settings.quota(self.project.name)
        if quota is None:
            return None
        team, limit = quota
        return Usage(limit, ownership.ipus([*self.objects.allocations, *self._orders_of(team)]))

    def _orders_of(self, team: str) -> list[Object]:
        """Return the allocations of the orders of a team. Only operators may see them. Raises ControllerError."""
        file = self.settings.operator_file
        with _controller_errors():
            return ownership.of_orders(team, controller.allocations(file)) if file and _is_there(file) else []

    def _ipu_usages(self) -> dict[str, Usage]:
        """Return the quota in IPUs, unless the tenant has an allocation in pod.yml, which limits it. Raises OrderError.

        The allocation of a vPOD has its name. That in pod.yml has another one.
        """
        try:
            usage = self.ipu_usage
            if usage is None or "allocation" in self.settings.tenant(self.project.name):
                return {}
            own = all(each["id"] in self.project.vpods for each in self.objects.allocations)
        except ControllerError as error:
            raise OrderError(error.message) from None
        return {orders.IPUS: usage} if own else {}

    def _needed_ipus(self, ipus: str, pending: list[Order]) -> int:
        """Return the IPUs of a new vPOD and of pending orders, except for those with an allocation, which is used."""
        allocated = {each["id"] for each in self.objects.allocations}
        return sum(map(orders.occupied, [ipus, *(order.ipus for order in pending if order.vpod not in allocated)]))

    def _file(self) -> Path:
        file = self.settings.project_file(self._cloud.project_id)
        with _controller_errors():
            found = _is_there(file)
        if file is None or not found:
            raise ControllerError("This project has no access to a V-IPU controller. Ask the operator of the POD.")
        return file

    def vpods(self) -> list[Vpod]:
        """Return the vPODs of the project. Raises ControllerError."""
        return ownership.vpods(self.project, self.objects)

    def remove_partition(self, id: str) -> None:
        """Remove a partition of the project. Raises ControllerError."""
        if not self.may_change or id not in [each["id"] for each in self.objects.partitions]:
            raise ControllerError(
                f"Cannot remove partition '{id}': this project has no such partition. Reload the page."
            )
        file = self._file()
        with _controller_errors():
            controller.remove_partition(file, id)

    def report(self) -> str:
        """Return the page of the rack report of the machines of the project. Raises ControllerError."""
        own = self.objects
        file = self.settings.operator_file
        with _controller_errors():
            if file and _is_there(file):
                return controller.tenant_report(file, self.project.name, own)
        raise ControllerError("The operator of the POD has not configured the rack report. Ask the operator for it.")

    @cached_property
    def _awx(self) -> awx.Client:
        if self.settings.awx is None or not self.may_order:
            raise OrderError("You may not order or release vPODs in this project. Ask the operator of the POD.")
        return awx.Client(self.settings.awx)

    @cached_property
    def survey(self) -> orders.Survey:
        """Choices of an order. Raises OrderError."""
        client = self._awx
        with _order_errors():
            return client.survey()

    @cached_property
    def _jobs(self) -> list[tuple[str, dict[str, Any]]] | OrderError:
        """Jobs of all projects, or the error, which is not tried again in one request."""
        try:
            client = self._awx
            with _order_errors():
                return client.jobs()
        except OrderError as error:
            return error

    def _all_jobs(self) -> list[tuple[str, dict[str, Any]]]:
        """Return the jobs of all projects. Raises OrderError."""
        if isinstance(self._jobs, OrderError):
            raise self._jobs
        return self._jobs

    def listed_orders(self) -> list[Order]:
        """Return the orders of the project. Raises OrderError."""
        return orders.of_project(self._all_jobs(), self._cloud.project_id)

    def _unfinished(self) -> list[Order]:
        """Return the unfinished orders that may be of the project. Raises OrderError.

        Some have no id of a project: those of operators, and those before an upgrade. The list omits them.
        """
        return orders.unfinished(self._all_jobs(), self._cloud.project_id, self.project.name)

    def order(self, answers: Mapping[str, Any]) -> None:
        """Order a vPOD for the project. ``answers``: those of the survey, except the project. Raises OrderError."""
        client, name = self._awx, answers["vpod_name"]
        pending = [order for order in self._unfinished() if order.action == awx.ORDER]
        if message := orders.name_error(name, [*self.project.vpods, *(order.vpod for order in pending)]):
            raise OrderError(message)
        if self.settings.awx and len(pending) >= self.settings.awx.max_pending:
            raise OrderError(
                f"Cannot order vPOD '{name}': {len(pending)} orders of this project have not ended. Wait for one."
            )
        offered = self._cloud.flavors()
        if answers["vpod_flavor"] not in self.flavors():
            raise OrderError(f"Cannot order vPOD '{name}': its flavor is not offered. Choose another one.")
        needed = [offered[answers["vpod_flavor"]], *(offered.get(order.flavor, Flavor(0, 0)) for order in pending)]
        usages = self._ipu_usages()
        ipus = self._needed_ipus(answers["vpod_ipus"], pending) if usages else 0
        ports = orders.ports(self.settings.tenant(self.project.name))
        if found := orders.quota_errors(needed, {**self._cloud.usages(), **usages}, ports, ipus):
            raise OrderError(
                f"Cannot order vPOD '{name}' within the quotas of the project: {'; '.join(found)}. Order less."
            )
        with _order_errors():
            client.order({**answers, **self._answers()})

    def _answers(self) -> dict[str, str]:
        """Return the answers that select the project. The playbooks reject another project of its name."""
        return {"vpod_tenant": self.project.name, orders.PROJECT_ID: self._cloud.project_id}

    def may_release(self, name: str) -> bool:
        """Return whether the user can release a vPOD now. No job for it may wait or run."""
        if not self.may_order or name not in self.project.vpods or isinstance(self._jobs, OrderError):
            return False
        return all(order.vpod != name for order in self._unfinished())

    def release(self, name: str) -> None:
        """Release a vPOD of the project. Raises OrderError."""
        client = self._awx
        if name not in self.project.vpods:
            raise OrderError(f"Cannot release vPOD '{name}': this project has no such vPOD. Reload the page.")
        if any(order.vpod == name for order in self._unfinished()):
            raise OrderError(
                f"Cannot release vPOD '{name}': its last order or release has not ended. Wait for its end."
            )
        del self._jobs  # a second release in this request is rejected too
        with _order_errors():
            client.release({"vpod_name": name, **self._answers()})

    def flavors(self) -> dict[str, Flavor]:
        """Return the flavors that both the survey and Nova offer to the project. Raises OrderError."""
        offered = self.survey.flavors
        found = self._cloud.flavors()
        return {name: found[name] for name in offered if name in found}

    def keys(self) -> dict[str, str]:
        """Return the SSH keys of the user by name."""
        return self._cloud.keys()


class Operator:
    """Access to the objects of all tenants."""

    def __init__(self, setting: settings.Settings, cloud: Cloud) -> None:
        self._settings = setting
        self._cloud = cloud

    @cached_property
    def objects(self) -> Objects:
        """All allocations and partitions. Raises ControllerError."""
        return controller.read(self._file)

    def vpods(self) -> list[Vpod]:
        """Return the vPODs of all projects, then the allocations that are in none. Raises ControllerError."""
        return ownership.all_vpods(self._cloud.projects(), self.objects)

    def report(self) -> str:
        """Return the page of the rack report. Raises ControllerError."""
        return controller.rack_report(self._file)

    @property
    def _file(self) -> Path:
        file = self._settings.operator_file
        if file is None or not _is_there(file):
            raise ControllerError(f"Cannot read the controller: {file or settings.NAME} does not exist. Create it.")
        return file
