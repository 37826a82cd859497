# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests to the API server. Objects are dictionaries, as in JSON.

kubernetes-asyncio reads the configuration and the credentials. Its generated models are not used: they would drop
fields that they do not know, and most of the time would go into conversions.
"""

from __future__ import annotations

import asyncio
import copy
import http
import inspect
import json
import os
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import yaml
from kubernetes_asyncio.client import ApiClient, Configuration
from kubernetes_asyncio.config import ConfigException, load_incluster_config, load_kube_config

from openipu.kubernetes.cluster import guard
from openipu.kubernetes.cluster.guard import Check

Object = dict[str, Any]

_TIMEOUT_SECONDS = 30.0
_CONNECT_SECONDS = 10.0
_MAX_CONNECTIONS = 100
_READ_BYTES = 2 << 20  # longest line of a stream of changes; no object is larger
_PAGE = 500  # objects of one list request
_JSON = "application/json"
_MERGE_PATCH = "application/merge-patch+json"
_METADATA = f"{_JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1,{_JSON}"
_TEMPORARY = frozenset({"ServerTimeout", "Timeout", "TooManyRequests"})  # reasons


class ApiError(Exception):
    """Raised when the API server rejects a request, or cannot be reached (``code`` 0).

    ``retry_seconds``: requested pause before the next attempt, 0 without one.
    """

    error_code = "OPU900"

    def __init__(self, message: str, code: int = 0, reason: str = "", retry_seconds: float = 0.0) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.retry_seconds = retry_seconds

    @property
    def is_missing(self) -> bool:
        """Return whether the object does not exist.

        A starting API server answers 404 without a reason until it serves custom resources.
        """
        return self.code == http.HTTPStatus.NOT_FOUND and self.reason == "NotFound"

    @property
    def already_exists(self) -> bool:
        """Return whether an object with this name exists."""
        return self.code == http.HTTPStatus.CONFLICT and self.reason == "AlreadyExists"

    @property
    def is_conflict(self) -> bool:
        """Return whether the object has changed since it was read."""
        return self.code == http.HTTPStatus.CONFLICT and self.reason != "AlreadyExists"

    @property
    def is_temporary(self) -> bool:
        """Return whether the API server requests to try again, for example until a new account has its token."""
        return self.code == http.HTTPStatus.TOO_MANY_REQUESTS or self.reason in _TEMPORARY

    @property
    def is_forbidden(self) -> bool:
        """Return whether the user has no right to do this."""
        return self.code == http.HTTPStatus.FORBIDDEN

    @property
    def is_expired(self) -> bool:
        """Return whether the requested revision is no longer stored."""
        return self.code == http.HTTPStatus.GONE


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of objects. ``group`` with its version, such as ``apps/v1``, or ``v1``."""

    group: str
    plural: str
    namespaced: bool = True

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the path of all objects, of those in a namespace, or of one."""
        parts = ["/apis" if "/" in self.group else "/api", self.group]
        if namespace and self.namespaced:
            parts += ["namespaces", quote(namespace, safe="")]
        parts += [self.plural, *(quote(each, safe="") for each in (name, subresource) if each)]
        return "/".join(parts)


PODS = Resource("v1", "pods")
CONFIG_MAPS = Resource("v1", "configmaps")
SERVICE_ACCOUNTS = Resource("v1", "serviceaccounts")
NODES = Resource("v1", "nodes", namespaced=False)
NAMESPACES = Resource("v1", "namespaces", namespaced=False)
EVENTS = Resource("v1", "events")
SECRETS = Resource("v1", "secrets")
ROLES = Resource("rbac.authorization.k8s.io/v1", "roles")
ROLE_BINDINGS = Resource("rbac.authorization.k8s.io/v1", "rolebindings")
LEASES = Resource("coordination.k8s.io/v1", "leases")
TOKEN_REVIEWS = Resource("authentication.k8s.io/v1", "tokenreviews", namespaced=False)
ACCESS_REVIEWS = Resource("authorization.k8s.io/v1", "subjectaccessreviews", namespaced=False)
IPUJOBS = Resource("graphcore.ai/v1alpha1", "ipujobs")


async def open_client(kubeconfig: str = "", observed: Callable[[str, int], None] = lambda method, code: None) -> Client:
    """Return a client: with a kubeconfig file, inside a cluster, or else as kubectl. Raises ApiError.

    ``observed`` is called with the method of each request and the status of its answer, 0 for no answer.
    """
    configuration = Configuration()
    try:
        if not kubeconfig and "KUBERNETES_SERVICE_HOST" in os.environ:
            load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        else:
            await load_kube_config(config_file=kubeconfig or None, client_configuration=configuration)
    except (ConfigException, OSError) as error:
        raise ApiError(f"Cannot find the API server: {error} Run inside a cluster, or set --kubeconfig.") from None
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, RecursionError):  # the library does not validate
        name = repr(kubeconfig) if kubeconfig else "of kubectl"
        raise ApiError(
            f"Cannot find the API server: the configuration {name} is not valid. Check that the file is YAML in UTF-8."
        ) from None
    return Client(configuration, observed)


class Client:
    """Requests to one API server. Use it as an asynchronous context manager, or call ``close``."""

    def __init__(
        self, configuration: Configuration, observed: Callable[[str, int], None] = lambda method, code: None
    ) -> None:
        self._observed = observed
        configuration.connection_pool_maxsize = _MAX_CONNECTIONS
        configuration.proxy = configuration.proxy or _environment_proxy(str(configuration.host))
        self._configuration = configuration
        self._api = ApiClient(configuration)
        _ignore_environment(self._api)
        guard.install(self._api.rest_client.pool_manager)
        self._check: Check | None = None

    def guarded(self, check: Check) -> Client:
        """Return a client with the same connections that calls ``check`` before each write. It may raise ApiError."""
        found = copy.copy(self)
        found._check = check
        return found

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._api.close()

    async def get(self, resource: Resource, namespace: str, name: str) -> Object:
        """Return an object. Raises ApiError."""
        return await self.request("GET", resource.path(namespace, name))

    async def find(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """Return an object, None if there is none. Raises ApiError."""
        try:
            return await self.get(resource, namespace, name)
        except ApiError as error:
            if error.is_missing:
                return None
            raise

    async def list(
        self,
        resource: Resource,
        namespace: str = "",
        selector: str = "",
        keep: Callable[[Object], Object] = lambda thing: thing,
    ) -> tuple[list[Object], str]:
        """Return all objects with the labels of a selector, and their revision. Raises ApiError.

        ``keep``: returns the part of an object that is needed, so that large objects are in memory page by page only.
        """
        query = {"limit": str(_PAGE), **({"labelSelector": selector} if selector else {})}
        objects: list[Object] = []
        while True:
            page = await self.request("GET", resource.path(namespace), query)
            objects += map(keep, page.pop("items"))
            query["continue"] = page["metadata"].get("continue", "")
            if not query["continue"]:
                return objects, page["metadata"]["resourceVersion"]

    async def create(self, resource: Resource, thing: Object, *, dry_run: bool = False) -> Object:
        """Create an object and return it. Raises ApiError."""
        path = resource.path(thing["metadata"].get("namespace", ""))
        return await self.request("POST", path, {"dryRun": "All"} if dry_run else None, thing)

    async def replace(self, resource: Resource, thing: Object, subresource: str = "") -> Object:
        """Replace an object and return it. Its resource version must be the present one. Raises ApiError."""
        metadata = thing["metadata"]
        path = resource.path(metadata.get("namespace", ""), metadata["name"], subresource)
        return await self.request("PUT", path, None, thing)

    async def patch(
        self, resource: Resource, namespace: str, name: str, patch: Object, subresource: str = ""
    ) -> Object:
        """Merge fields into an object and return it. Raises ApiError."""
        path = resource.path(namespace, name, subresource)
        return await self.request("PATCH", path, None, patch, content_type=_MERGE_PATCH)

    async def patch_only(self, resource: Resource, namespace: str, name: str, patch: Object) -> Object:
        """Merge fields into a large object and return its metadata only. Raises ApiError."""
        path = resource.path(namespace, name)
        return await self.request("PATCH", path, None, patch, content_type=_MERGE_PATCH, accept=_METADATA)

    async def delete(
        self, resource: Resource, namespace: str, name: str, uid: str = "", grace_seconds: int | None = None
    ) -> None:
        """Delete an object, with ``uid`` only this one. A missing object is no error. Raises ApiError."""
        options: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid:
            options["preconditions"] = {"uid": uid}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        try:
            await self.request("DELETE", resource.path(namespace, name), None, options)
        except ApiError as error:
            if not (error.is_missing or error.code == http.HTTPStatus.CONFLICT):
                raise

    async def watch(
        self, resource: Resource, namespace: str, revision: str, selector: str = "", seconds: int = 300
    ) -> AsyncIterator[tuple[str, Object]]:
        """Yield type and object of the changes after a revision, for ``seconds``. Raises ApiError."""
        query = {
            "watch": "true",
            "resourceVersion": revision,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
            **({"labelSelector": selector} if selector else {}),
        }
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS, sock_read=seconds + _TIMEOUT_SECONDS)
        response = await self._send("GET", resource.path(namespace), query, None, "", timeout)
        try:
            async for line in response.content:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    status = event["object"]
                    raise ApiError(status.get("message", ""), status.get("code", 0), status.get("reason", ""))
                yield event["type"], event["object"]
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise ApiError(f"The stream of changes of {resource.plural} has ended: {error}") from None
        finally:
            response.close()

    async def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Object | None = None,
        content_type: str = _JSON,
        accept: str = _JSON,
    ) -> Object:
        """Make a request and return the answer. Raises ApiError."""
        timeout = aiohttp.ClientTimeout(total=_TIMEOUT_SECONDS, sock_connect=_CONNECT_SECONDS)
        response = await self._send(method, path, query, body, content_type, timeout, accept)
        try:
            return json.loads(await response.read() or b"{}")  # type: ignore[no-any-return]
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise ApiError(f"Cannot read the answer of the API server: {error}") from None

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: Object | None,
        content_type: str,
        timeout: aiohttp.ClientTimeout,
        accept: str = _JSON,
    ) -> aiohttp.ClientResponse:
        headers = {"Accept": accept, "User-Agent": "openipu-operator"}
        if content_type:
            headers["Content-Type"] = content_type
        updated = self._api.update_params_for_auth(headers, [], ["BearerToken"])
        if inspect.isawaitable(updated):  # a coroutine since release 33
            await updated
        url = f"{self._configuration.host}{path}"
        try:
            with guard.checked(None if method == "GET" else self._check):
                response = await self._api.rest_client.request(
                    method,
                    url,
                    query_params=dict(query or {}),
                    headers=headers,
                    body=body,
                    _preload_content=False,
                    _request_timeout=timeout,
                )
            self._observed(method, response.status)
            if response.status < http.HTTPStatus.BAD_REQUEST:
                return response  # type: ignore[no-any-return]
            raise _error(response, await response.read())
        except (aiohttp.ClientError, TimeoutError, asyncio.IncompleteReadError, OSError) as error:
            self._observed(method, 0)
            raise ApiError(f"The API server does not respond: {error or type(error).__name__}") from None


def _environment_proxy(url: str) -> str | None:
    """Return the URL of the HTTP proxy for a server, as the environment has it.

    A proxy that is itself reached with TLS is ignored, as aiohttp does: it would need an authority of its own.
    """
    parts = urlsplit(url)
    proxy = None if proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme)
    return proxy if proxy and urlsplit(proxy).scheme == "http" else None


def _ignore_environment(api: ApiClient) -> None:
    """Stop reading the environment for each request.

    The session of the library starts a thread each time, which searches for credentials in a netrc file. They would
    also conflict with those of the configuration.
    """
    connector = api.rest_client.pool_manager.connector
    api.rest_client.pool_manager.detach()
    api.rest_client.pool_manager = aiohttp.ClientSession(connector=connector, read_bufsize=_READ_BYTES)


def _error(response: aiohttp.ClientResponse, body: bytes) -> ApiError:
    code, pause = response.status, response.headers.get("Retry-After", "")
    seconds = float(pause) if pause.isdecimal() else 0.0  # a date, as HTTP permits it, is never sent
    try:
        status = json.loads(body)
        return ApiError(status.get("message", ""), code, status.get("reason", ""), seconds)
    except (ValueError, AttributeError):
        return ApiError(body.decode(errors="replace")[:200], code, retry_seconds=seconds)
