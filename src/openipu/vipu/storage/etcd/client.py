# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls to the nodes of an etcd cluster. When one node does not respond, the next call uses another one."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import grpc
from aetcd import rpc

from openipu.vipu.storage.etcd.keys import Location, Tls
from openipu.vipu.storage.interface import StoreError
from openipu.vipu.tls import load

CALL_SECONDS = 1.0  # for one attempt; half of the lease must suffice to find another node
_LOGIN_SECONDS = 3.0  # etcd hashes the password, which takes a tenth of a second of processor time
_CHANNEL = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.enable_http_proxy", 0),
    (
        "grpc.enable_retries",
        0,
    ),  # only callers compare results
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.use_local_subchannel_pool", 1),
)
# A node without a leader rejects such calls at once, instead of waiting for an election.
_REQUIRE_LEADER = ("hasleader", "true")
_NO_RESPONSE = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED)
# A server may have executed such a call.
_UNCERTAIN = (*_NO_RESPONSE, grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL, grpc.StatusCode.ABORTED)
# Parts of the errors of a token that has expired, or is older than the last change of users or roles.
_OLD_TOKEN = ("invalid auth token", "revision of auth store is old")
_STUBS = {"KV": rpc.KVStub, "Lease": rpc.LeaseStub, "Watch": rpc.WatchStub, "Auth": rpc.AuthStub}


class EtcdError(StoreError):
    """Raised when etcd rejects a call.

    ``uncertain``: the call, or an earlier attempt, may have been executed. ``old_token``: the user must log in again.
    """

    def __init__(self, details: str, code: grpc.StatusCode) -> None:
        super().__init__(f"etcd rejected a request: {details}.")
        self.details = details
        self.code = code
        self.uncertain = code in _UNCERTAIN
        self.old_token = code is grpc.StatusCode.UNAUTHENTICATED or any(text in details for text in _OLD_TOKEN)


class EtcdUnavailableError(EtcdError):
    """Raised when no node responds. A write may have been executed, or may still be."""


class EtcdClient:
    """Calls to an etcd cluster, from any thread."""

    def __init__(self, location: Location) -> None:
        """Prepare the connections. Raises TlsError for files that cannot be used."""
        self._location = location
        self._credentials = location.tls and _credentials(location.tls)
        self._channels: dict[str, grpc.Channel] = {}
        self._stubs: dict[tuple[str, str], Any] = {}  # by node and service
        self._lock = threading.Lock()
        self._current = 0  # number of calls that failed; modulo the endpoints, the node to call
        self._token = ""

    def call(self, service: str, method: str, request: Any, seconds: float = CALL_SECONDS) -> Any:
        """Return the response of a unary method, with one attempt for each node.

        Raises EtcdUnavailableError when none responds, and EtcdError when one rejects the call.
        """
        error: EtcdError | None = None
        for _ in self._location.endpoints:
            used = self._current
            try:
                return self._authenticated(service, method, request, seconds)
            except EtcdUnavailableError as failure:
                error = failure
                self.leave(used)
            except EtcdError as failure:
                failure.uncertain |= error is not None
                raise
        assert error is not None
        raise error

    def leave(self, used: int) -> None:
        """Use another node from now on, unless another thread has changed it since ``used``."""
        with self._lock:
            if self._current == used:
                self._current += 1

    @property
    def current(self) -> int:
        """Number that changes with the node in use."""
        return self._current

    @contextlib.contextmanager
    def watching(self, requests: Iterator[Any]) -> Iterator[Any]:
        """Return a context for a stream of the service Watch. Raises EtcdError, also while the stream is read."""
        stub = self._stub("Watch")
        with _errors():
            stream = stub.Watch(requests, metadata=self._metadata())
            try:
                yield stream
            finally:
                stream.cancel()

    def keep_alive(self, lease: int, seconds: float) -> int:
        """Renew a lease, with one attempt at one node. Return its time to live, 0 when it has expired.

        Raises EtcdUnavailableError and EtcdError.
        """
        used = self._current
        try:
            with _errors():
                stream = self._stub("Lease").LeaseKeepAlive(
                    iter([rpc.LeaseKeepAliveRequest(ID=lease)]), timeout=seconds, metadata=self._metadata()
                )
                for response in stream:
                    return int(response.TTL)
                raise EtcdUnavailableError("the stream ended", grpc.StatusCode.UNAVAILABLE)
        except EtcdUnavailableError:
            self.leave(used)
            raise
        except EtcdError as error:
            if error.old_token:
                self._token = ""
            raise

    def granted_seconds(self, lease: int) -> int:
        """Return the time to live that etcd granted to a lease, -1 or 0 after its end. Raises EtcdError."""
        return int(self.call("Lease", "LeaseTimeToLive", rpc.LeaseTimeToLiveRequest(ID=lease)).grantedTTL)

    def close(self) -> None:
        """Close all connections. Running calls fail."""
        with self._lock:
            channels = list(self._channels.values())
            self._channels.clear()
            self._stubs.clear()
        for channel in channels:
            channel.close()

    def _authenticated(self, service: str, method: str, request: Any, seconds: float) -> Any:
        """Call the current node. When the token of the etcd user has expired, renew it and repeat the call."""
        token = self._token
        try:
            return self._attempt(service, method, request, seconds)
        except EtcdError as error:
            if not (token and error.old_token):
                raise
        if self._token == token:
            self._token = ""
        return self._attempt(service, method, request, seconds)

    def _attempt(self, service: str, method: str, request: Any, seconds: float) -> Any:
        with _errors():
            return getattr(self._stub(service), method)(request, timeout=seconds, metadata=self._metadata())

    def _stub(self, service: str) -> Any:
        endpoint = self._location.endpoints[self._current % len(self._location.endpoints)]
        with self._lock:
            stub = self._stubs.get((endpoint, service))
            if stub is None:
                if endpoint not in self._channels:
                    self._channels[endpoint] = (
                        grpc.insecure_channel(endpoint, _CHANNEL)
                        if self._credentials is None
                        else grpc.secure_channel(endpoint, self._credentials, _CHANNEL)
                    )
                stub = self._stubs[endpoint, service] = _STUBS[service](self._channels[endpoint])
        return stub

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        if self._location.user and not self._token:
            request = rpc.AuthenticateRequest(name=self._location.user, password=self._location.password)
            with _errors():
                self._token = self._stub("Auth").Authenticate(request, timeout=_LOGIN_SECONDS).token
        return (_REQUIRE_LEADER, ("token", self._token)) if self._token else (_REQUIRE_LEADER,)


@contextlib.contextmanager
def _errors() -> Iterator[None]:
    """Convert the errors of gRPC."""
    try:
        yield
    except grpc.RpcError as error:
        details = (error.details() or error.code().name).removeprefix("etcdserver: ").rstrip(".")
        kind = EtcdUnavailableError if error.code() in _NO_RESPONSE else EtcdError
        raise kind(details, error.code()) from None
    except ValueError as error:  # the channel was closed by another thread
        raise EtcdUnavailableError(str(error), grpc.StatusCode.CANCELLED) from None


def _credentials(tls: Tls) -> grpc.ChannelCredentials:
    if tls.certificate and tls.key:
        ca, certificate, key = load.check((tls.ca, tls.certificate, tls.key))
        return grpc.ssl_channel_credentials(ca, key, certificate)
    return grpc.ssl_channel_credentials(load.read(tls.ca))
