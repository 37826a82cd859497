# SPDX-License-Identifier: GPL-3.0-or-later
"""Access of the user of a request, with what Horizon returns about its token."""

from __future__ import annotations

from functools import cached_property

from django.conf import settings as django_settings
from django.http import HttpRequest
from horizon.utils import settings as horizon_settings
from openstack_auth import policy as policies
from openstack_dashboard import api, policy
from openstack_dashboard.usage import quotas

from openipu.dashboard import access, ownership, settings
from openipu.dashboard.orders import Flavor, Usage
from openipu.dashboard.ownership import Project

_CHANGE = (("compute", "os_compute_api:servers:create"), ("compute", "os_compute_api:servers:delete"))
_QUOTAS = ("instances", "cores", "ram", "port")


def tenant(request: HttpRequest) -> access.Tenant:
    """Return the access of a request to the objects of its project, which are read once per request.

    Raises SettingsError.
    """
    if not hasattr(request, "openipu_tenant"):
        request.openipu_tenant = access.tenant(_setting(), Cloud(request))
    found: access.Tenant = request.openipu_tenant
    return found


def operator(request: HttpRequest) -> access.Operator:
    """Return the access of a request to the objects of all tenants. Raises SettingsError."""
    return access.Operator(settings.parse(_setting()), Cloud(request))


def _setting() -> object:
    return getattr(django_settings, settings.NAME, {})


class Cloud:
    """OpenStack as the token of a request may use it."""

    def __init__(self, request: HttpRequest) -> None:
        self._request = request

    @property
    def project_id(self) -> str:
        """Id of the project of the token."""
        return str(self._request.user.project_id)

    @property
    def domain_id(self) -> str:
        """Id of the domain of the project."""
        return str(self._request.user.token.project.get("domain_id"))

    @property
    def roles(self) -> list[str]:
        """Names of the roles of the token."""
        return [str(role["name"]) for role in self._request.user.roles]

    @cached_property
    def project(self) -> Project:
        """Project with the records of its vPODs, which Keystone returns to the token."""
        found = api.keystone.tenant_get(self._request, self.project_id, admin=False)
        return ownership.project(found.id, found.name, getattr(found, "tags", ()))

    def projects(self) -> list[Project]:
        """Return all projects. The token must be one of an operator."""
        listed, _more = api.keystone.tenant_list(self._request)
        return [ownership.project(each.id, each.name, getattr(each, "tags", ())) for each in listed]

    def allows_changes(self) -> bool:
        """Return whether the policy of Nova allows to create and delete servers. Without a policy, it does not.

        Horizon allows everything without a policy, because it expects that the service rejects the request.
        """
        check = horizon_settings.import_setting("POLICY_CHECK_FUNCTION")
        if check is policies.check:
            enforcer = policies._get_enforcer().get("compute")
            if enforcer is None or any(action not in enforcer.rules for _service, action in _CHANGE):
                return False
        return check is not None and bool(policy.check(_CHANGE, self._request))

    def flavors(self) -> dict[str, Flavor]:
        """Return the flavors that Nova offers to the project."""
        return {each.name: Flavor(each.vcpus, each.ram) for each in api.nova.flavor_list(self._request)}

    def keys(self) -> dict[str, str]:
        """Return the SSH keys of the user by name. Nova also has X.509 certificates."""
        found = api.nova.keypair_list(self._request)
        return {each.name: each.public_key for each in found if getattr(each, "type", "ssh") == "ssh"}

    def usages(self) -> dict[str, Usage]:
        """Return the quotas of the project and their use by name."""
        found = quotas.tenant_quota_usages(self._request, targets=_QUOTAS).usages
        return {
            name: Usage(None if each["quota"] == float("inf") else int(each["quota"]), int(each.get("used", 0)))
            for name, each in found.items()
            if name in _QUOTAS and "quota" in each
        }
