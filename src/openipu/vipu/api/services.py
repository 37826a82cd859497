# SPDX-License-Identifier: GPL-3.0-or-later
"""The gRPC services of a controller that serves, on its endpoints."""

from __future__ import annotations

from collections.abc import Sequence

from openipu.shared.vipu.addresses import is_wildcard
from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.vipu.api.addresses import ListenAddress
from openipu.vipu.api.admin import AdminService
from openipu.vipu.api.convert import Message
from openipu.vipu.api.endpoints import ADMIN, TENANT, USER, VERSION, EndpointOptions, Endpoints
from openipu.vipu.api.health import REFLECTION, reflection_handler
from openipu.vipu.api.public import UserService, VersionService
from openipu.vipu.api.tenant import TenantService
from openipu.vipu.api.watch import Watches
from openipu.vipu.lifecycle.interface import Lifecycle
from openipu.vipu.storage.writer import RecordWriter


class Services:
    """All services of the controller."""

    def __init__(self, controller: RecordWriter, lifecycle: Lifecycle, options: EndpointOptions) -> None:
        """Create the services."""
        self._options = options
        self.watches = Watches(controller, options.confirm)
        user = UserService(controller, lifecycle, options.max_retries)
        self._admin = AdminService(
            controller,
            lifecycle,
            self.watches,
            options.max_retries,
            options.certs,
            secure=options.credentials is not None,
            shared_certificates=options.shared_certificates,
            shared=options.authenticator.shared if options.authenticator else None,
        )
        self._handlers = {
            VERSION: virmgrpc.handler("VersionService", VersionService(options.version)),
            # Returns its reply already encoded.
            USER: virmgrpc.handler("UserService", user, {"ListPartitions": bytes}),
            TENANT: admin.handler("TenantService", TenantService(controller, lifecycle, self.watches)),
            ADMIN: admin.handler("AdminService", self._admin),
        }

    def start(self, endpoints: Endpoints, bound: Sequence[ListenAddress]) -> None:
        """Serve all calls of the endpoints, whose addresses are ``bound``, and report them as healthy."""
        if len(bound) > 1:
            self._admin.user_endpoint = _user_endpoint(*bound)
        self.watches.start()
        for endpoint in endpoints:
            served = {service: self._handlers[service] for service in endpoint.services}
            endpoint.handler = endpoints.guard(
                endpoint,
                {REFLECTION: reflection_handler(endpoint.services), **served},
                authenticator=self._options.authenticator,
                unauthenticated=[VERSION],
                admin_only=[ADMIN],
                confirm=self._options.confirm,
            )
        endpoints.mark_healthy()

    def stop(self) -> None:
        """End all streams of changes."""
        self.watches.stop()


def _user_endpoint(users: ListenAddress, administrators: ListenAddress) -> Message:
    """Return the address of users for callers of the endpoint of administrators."""
    same = users.host == administrators.host or is_wildcard(users.host)
    return admin.UserEndpoint(host="" if same else users.host, port=users.port)
