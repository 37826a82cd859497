# SPDX-License-Identifier: GPL-3.0-or-later
"""Authentication, authorisation and admission of every call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import grpc

from openipu.vipu.api.admission import Admission, Group, Immediate
from openipu.vipu.api.auth import UNAUTHENTICATED_ADMINISTRATOR, Authenticator, AuthError, Caller
from openipu.vipu.api.calls import Call, RejectedCall, StartedStream, StreamingCall
from openipu.vipu.api.exchange import Exchanges
from openipu.vipu.api.methods import Method
from openipu.vipu.metrics.meters import Calls


class RequestGuard(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Wrapper of the service handlers.

    Handlers receive a ``Caller`` instead of the gRPC context, or both if they stream replies. Their exceptions become
    a status with one message. It is a handler, not an interceptor, because a handler costs less per call.

    A call is authenticated and admitted by its metadata alone, before a thread reads its request. For this, gRPC
    regards every request as a stream: it would read a single request itself, without a time limit.
    """

    def __init__(
        self,
        authenticator: Authenticator | None,
        handlers: Mapping[str, grpc.GenericRpcHandler],
        *,
        unauthenticated: Iterable[str],
        admin_only: Iterable[str],
        groups: Mapping[str, Group],
        admission: Admission,
        own: Mapping[Group, Admission] | None = None,
        exchanges: Exchanges,
        meters: Calls,
        confirm: Callable[[], None] | None = None,
    ) -> None:
        """Wrap ``handlers``, a map of full service names. Without authenticator all calls are allowed.

        Services in ``unauthenticated`` need no credentials. ``groups``: services whose calls have limits of their
        own; the limits of others depend on the caller. ``own``: groups whose calls the other endpoints do not share.
        ``meters`` counts all calls. ``confirm`` raises an error when the records that a method has read may be
        outdated.
        """
        self._authenticator = authenticator
        self._handlers = dict(handlers)
        self._unauthenticated = frozenset(unauthenticated)
        self._admin_only = frozenset(admin_only)
        self._groups = dict(groups)
        self._admission = admission
        self._own = dict(own or {})
        self._exchanges = exchanges
        self._meters = meters
        self._confirm = confirm
        self._methods: dict[str, Method] = {}
        self._immediate = Immediate()

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """Return the handler of one call, None for an unknown method. This runs in the only thread of gRPC."""
        method = self._methods.get(handler_call_details.method) or self._find(handler_call_details)
        if method is None:
            return None
        caller = UNAUTHENTICATED_ADMINISTRATOR
        try:
            group = Group.ADMINISTRATORS
            if self._authenticator is not None:
                group, caller = self._identify(method, handler_call_details.invocation_metadata)
            method.check(caller)
            group = method.group or group
            ticket = self._admission_of(group).admit(
                group, caller.user, slow=method.slow, reads_agents=method.reads_agents
            )
        except Exception as error:  # noqa: BLE001 - clients receive a message, never a traceback
            return RejectedCall(method, caller, error, self._immediate)
        authenticator = None if method.unauthenticated else self._authenticator
        kind = StartedStream if method.non_blocking else StreamingCall if method.streams_replies else Call
        return kind(method, caller, ticket, self._exchanges, authenticator)

    def _admission_of(self, group: Group) -> Admission:
        """Return what counts the calls of a group."""
        return self._own.get(group, self._admission)

    def _identify(self, method: Method, metadata: Any) -> tuple[Group, Caller]:
        """Return the caller and its group. Raises AuthError, unless the method needs no credentials."""
        assert self._authenticator is not None
        try:
            caller = self._authenticator(metadata)
        except AuthError:
            if not method.unauthenticated:
                raise
            return Group.ANONYMOUS, UNAUTHENTICATED_ADMINISTRATOR
        return Group.ADMINISTRATORS if caller.administrator else Group.USERS, caller

    def _find(self, details: grpc.HandlerCallDetails) -> Method | None:
        path = details.method
        service = path.rpartition("/")[0][1:]
        inner = self._handlers.get(service)
        handler = inner and inner.service(details)
        if handler is None:
            return None
        method = self._methods[path] = Method(
            path, handler, self._meters.of(path, timed=not handler.response_streaming)
        )
        method.unauthenticated = service in self._unauthenticated
        method.admin_only = service in self._admin_only
        method.group = self._groups.get(service)
        method.confirm = None if service in self._groups else self._confirm
        return method
