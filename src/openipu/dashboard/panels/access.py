# SPDX-License-Identifier: GPL-3.0-or-later
"""Access of the user of a request: visible objects and allowed changes. The project is that of the token."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

from django.conf import settings as django_settings
from django.http import HttpRequest
from openstack_dashboard import api, policy
from openstack_dashboard.usage import quotas

from openipu.dashboard import awx, controller, orders, ownership, settings
from openipu.dashboard.controller import ControllerError
from openipu.dashboard.orders import Order, OrderError
from openipu.dashboard.ownership import Objects, Project, Vpod

_CHANGE = (("compute", "os_compute_api:servers:create"), ("compute", "os_compute_api:servers:delete"))
_QUOTAS = ("instances", "cores", "ram", "port")


def read_settings() -> settings.Settings:
    """Return the settings of the panel. Raises SettingsError."""
    return settings.parse(getattr(django_settings, settings.NAME, {}))


def tenant(request: HttpRequest) -> Tenant:
    """Return the access of a request to the objects of its project, which are read once per request.

    Raises SettingsError.
    """
    if not hasattr(request, "openipu_tenant"):
        request.openipu_tenant = Tenant(request)
    found: Tenant = request.openipu_tenant
    return found


class Tenant:
    """Access to the objects of the project of a token."""

    def __init__(self, request: HttpRequest) -> None:
        """Raises SettingsError."""
        self._request = request
        self.settings = read_settings()
        self.project_id = str(request.user.project_id)

    @cached_property
    def project(self) -> Project:
        """Project with the records of its vPODs, which Keystone returns to the token."""
        found = api.keystone.tenant_get(self._request, self.project_id, admin=False)
        return ownership.project(found.id, found.name, getattr(found, "tags", ()))

    @property
    def may_change(self) -> bool:
        """Return whether the roles of the user in the project allow to create and delete servers."""
        return bool(policy.check(_CHANGE, self._request))

    @property
    def may_order(self) -> bool:
        """Return whether the user can order and release vPODs."""
        found = self.settings.awx
        domain = self._request.user.token.project.get("domain_id")
        return found is not None and domain == found.domain and self.may_change

    @cached_property
    def objects(self) -> Objects:
        """Allocations and partitions of the project. Raises ControllerError."""
        return ownership.owned(self.project, controller.read(self._file))

    @property
    def _file(self) -> Path:
        file = self.settings.project_file(self.project_id)
        if file is None or not file.exists():
            raise ControllerError("This project has no access to a V-IPU controller. Ask the operator of the POD.")
        return file

    def vpods(self) -> list[Vpod]:
        """Return the vPODs of the project. Raises ControllerError."""
        return ownership.vpods(self.project, self.objects)

    def remove_partition(self, id: str) -> None:
        """Remove a partition of the project. Raises ControllerError."""
        if not self.may_change or id not in [each["id"] for each in self.objects.partitions]:
            raise ControllerError(f"Cannot remove partition '{id}': this project has no such partition.")
        controller.remove_partition(self._file, id)

    def report(self) -> str:
        """Return the page of the rack report of the machines of the project. Raises ControllerError."""
        file = self.settings.operator_file
        if file is None or not file.exists():
            raise ControllerError("The operator of the POD has not configured the rack report.")
        return controller.tenant_report(file, self.project.name, self.objects)

    @cached_property
    def _awx(self) -> awx.Client:
        if self.settings.awx is None or not self.may_order:
            raise OrderError("You may not order or release vPODs in this project.")
        return awx.Client(self.settings.awx)

    @cached_property
    def survey(self) -> orders.Survey:
        """Choices of an order. Raises OrderError."""
        return self._awx.survey()

    def listed_orders(self) -> list[Order]:
        """Return the orders of the project. Raises OrderError."""
        return orders.of_project(self._awx.jobs(), self.project.name)

    def order(self, answers: dict[str, Any]) -> None:
        """Order a vPOD for the project. ``answers``: those of the survey, except the project. Raises OrderError."""
        name = answers["vpod_name"]
        pending = [order.vpod for order in self.listed_orders() if order.action == awx.ORDER and not order.ended]
        if message := orders.name_error(name, [*self.project.vpods, *pending]):
            raise OrderError(message)
        flavor = self.flavors()[answers["vpod_flavor"]]
        if found := orders.quota_errors(flavor, self._usages()):
            raise OrderError(f"Cannot order vPOD '{name}' within the quotas of the project: {'; '.join(found)}.")
        self._awx.order({**answers, "vpod_tenant": self.project.name})

    def release(self, name: str) -> None:
        """Release a vPOD of the project. Raises OrderError."""
        if name not in self.project.vpods:
            raise OrderError(f"Cannot release vPOD '{name}': this project has no such vPOD.")
        self._awx.release({"vpod_name": name, "vpod_tenant": self.project.name})

    def flavors(self) -> dict[str, orders.Flavor]:
        """Return the flavors that both the survey and Nova offer to the project. Raises OrderError."""
        offered = self.survey.flavors
        found = {each.name: orders.Flavor(each.vcpus, each.ram) for each in api.nova.flavor_list(self._request)}
        return {name: found[name] for name in offered if name in found}

    def keys(self) -> dict[str, str]:
        """Return the public keys of the key pairs of the user by name."""
        return {each.name: each.public_key for each in api.nova.keypair_list(self._request)}

    def _usages(self) -> dict[str, orders.Usage]:
        found = quotas.tenant_quota_usages(self._request, targets=_QUOTAS).usages
        return {
            name: orders.Usage(None if each["quota"] == float("inf") else int(each["quota"]), int(each.get("used", 0)))
            for name, each in found.items()
            if name in _QUOTAS and "quota" in each
        }


class Operator:
    """Access to the objects of all tenants."""

    def __init__(self, request: HttpRequest) -> None:
        """Raises SettingsError."""
        self._request = request
        self._settings = read_settings()

    @cached_property
    def objects(self) -> Objects:
        """All allocations and partitions. Raises ControllerError."""
        return controller.read(self._file)

    def vpods(self) -> list[Vpod]:
        """Return the vPODs of all projects, then the allocations that are in none. Raises ControllerError."""
        listed, _more = api.keystone.tenant_list(self._request)
        projects = [ownership.project(each.id, each.name, getattr(each, "tags", ())) for each in listed]
        return ownership.all_vpods(projects, self.objects)

    def report(self) -> str:
        """Return the page of the rack report. Raises ControllerError."""
        return controller.rack_report(self._file)

    @property
    def _file(self) -> Path:
        file = self._settings.operator_file
        if file is None or not file.exists():
            raise ControllerError(f"Cannot read the controller: {file or settings.NAME} does not exist. Create it.")
        return file
