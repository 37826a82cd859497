# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP application of the stand-in: authentication, routes, and the requests that it received."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.awx.standin import actions, queries, views
from tests.awx.standin.checks import check
from tests.awx.standin.fields import Rejected
from tests.awx.standin.resource import Resource
from tests.awx.standin.resources import RESOURCES, UNIFIED
from tests.awx.standin.store import Object, Store

VERSION = "24.6.1"
ADMINISTRATOR, PASSWORD = "admin", "stand-in-password"
READER = "reader"
_LOGIN = " To establish a login session, visit /api/login/."
_METHODS = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"]
# Names of fields that awx.awx sends although they are read-only in the API.
_SENT_READ_ONLY = {"managed", "organization", "workflow_job_template", "inventory", "identifier"}


class StandIn:
    """State of one AWX: its objects, its users and the log of requests."""

    def __init__(self, projects: dict[str, Path] | None = None) -> None:
        self.store = Store()
        self.projects = projects or {}
        self.requests: list[tuple[str, str, Any]] = []
        self.unknown_fields: list[tuple[str, str]] = []
        self.failing: dict[str, int] = {}  # status of requests whose path contains the key
        actions.add_defaults(self.store, ADMINISTRATOR, READER)

    @property
    def writes(self) -> list[tuple[str, str, Any]]:
        """Requests that may have changed objects, without those for tokens, which each module makes."""
        changing = ("POST", "PUT", "PATCH", "DELETE")
        return [entry for entry in self.requests if entry[0] in changing and "tokens/" not in entry[1]]

    def application(self) -> Starlette:
        """Return the ASGI application."""
        routes = [
            Route("/api/", self._guard(self._root, public=True), methods=_METHODS),
            Route("/api/v2/", self._guard(self._endpoints, public=True), methods=_METHODS),
            Route("/api/v2/{resource}/", self._guard(self._list), methods=_METHODS),
            Route("/api/v2/roles/{key}/{name}/", self._guard(self._role_members), methods=_METHODS),
            Route("/api/v2/{resource}/{key}/", self._guard(self._detail), methods=_METHODS),
            Route("/api/v2/{resource}/{key}/{name}/", self._guard(self._sublist), methods=_METHODS),
        ]
        return Starlette(routes=routes)

    def _guard(
        self, handler: Callable[[Request, Any], Any], public: bool = False
    ) -> Callable[[Request], Awaitable[Response]]:
        """Return an endpoint that authenticates, parses the body, logs the request and answers Rejected."""

        async def endpoint(request: Request) -> Response:
            raw = await request.body()
            try:
                body = json.loads(raw) if raw else {}
                self.requests.append((request.method, request.url.path, json.loads(raw) if raw else {}))
                user = None if public else self._user(request)
                for part, status in self.failing.items():
                    if part in request.url.path and request.method != "GET":
                        raise Rejected({"detail": "A server error has occurred."}, status)
                writes = request.method in ("POST", "PUT", "PATCH", "DELETE") and "tokens/" not in request.url.path
                if writes and user != ADMINISTRATOR:
                    raise Rejected({"detail": "You do not have permission to perform this action."}, 403)
                answer = handler(request, body)
            except json.JSONDecodeError as error:
                answer = JSONResponse({"detail": f"JSON parse error - {error}"}, 400)
            except Rejected as error:
                answer = JSONResponse(error.body, error.status)
            answer.headers["X-API-Product-Version"] = VERSION
            answer.headers["X-API-Product-Name"] = "AWX"
            return answer  # type: ignore[no-any-return]

        return endpoint

    def _user(self, request: Request) -> str:
        scheme, _, value = request.headers.get("Authorization", "").partition(" ")
        if scheme == "Bearer":
            token = self.store.find("tokens", _token=value)
            if token:
                return str(token["_user"])
            raise Rejected({"detail": "Authentication credentials were not provided." + _LOGIN}, 401)
        if scheme == "Basic":
            name, _, password = base64.b64decode(value).decode().partition(":")
            if password == PASSWORD and name in (ADMINISTRATOR, READER):
                return name
            raise Rejected({"detail": "Invalid username/password." + _LOGIN}, 401)
        raise Rejected({"detail": "Authentication credentials were not provided." + _LOGIN}, 401)

    def _root(self, _request: Request, _body: Any) -> Response:
        versions = {"v2": views.BASE + "/"}
        return JSONResponse(
            {"description": "AWX REST API", "current_version": views.BASE + "/", "available_versions": versions}
        )

    def _endpoints(self, _request: Request, _body: Any) -> Response:
        names = {**{name: name for name in RESOURCES}, "inventory": "inventories", "me": "me", "config": "config"}
        names.pop("inventories")
        return JSONResponse({key: f"{views.BASE}/{name}/" for key, name in names.items()})

    def _resource(self, request: Request) -> Resource:
        name = request.path_params["resource"]
        if name not in RESOURCES:
            raise Rejected({"detail": "The requested resource could not be found."}, 404)
        return RESOURCES[name]

    def _list(self, request: Request, body: Any) -> Response:
        name, parameters = request.path_params["resource"], request.query_params.multi_items()
        if name == "me":
            found = [self.store.find("users", username=self._user(request))]
            return self._page(request, [item for item in found if item])
        if name == "config":
            return JSONResponse({"version": VERSION})
        if name == "unified_job_templates":
            items = (item for kind in UNIFIED for item in self.store.objects[kind].values())
            return self._page(request, queries.listed(self.store, items, parameters))
        if name == "roles":
            return JSONResponse(
                queries.page(
                    [views.show_role(self.store, key) for key in self.store.roles], request.url.path, parameters
                )
            )
        resource = self._resource(request)
        if request.method == "OPTIONS":
            return JSONResponse(views.options(name), headers={"Allow": "GET, POST, HEAD, OPTIONS"})
        if request.method == "POST":
            return JSONResponse(self._create(resource, body, request), 201)
        if request.method not in ("GET", "HEAD"):
            raise Rejected({"detail": f'Method "{request.method}" not allowed.'}, 405)
        queries.check_fields(resource, parameters)
        items = self.store.objects[name].values() if self._user(request) == ADMINISTRATOR else []
        return self._page(request, queries.listed(self.store, items, parameters))

    def _page(self, request: Request, items: list[Object]) -> Response:
        found = queries.page(items, request.url.path, request.query_params.multi_items())
        found["results"] = [views.show(self.store, item) for item in found["results"]]
        return JSONResponse(found)

    def _create(self, resource: Resource, body: Any, request: Request) -> Object:
        values = self.store.convert(resource, body, None)
        self._note_unknown(resource, body)
        check(self.store, resource.name, values, None, body)
        self.store.check_unique(resource, values, None)
        item = self.store.add(resource, values)
        if resource.name == "tokens":
            item |= {"_token": secrets.token_hex(15), "_user": self._user(request)}
        if resource.name == "projects":
            actions.start_update(self.store, item)
        return views.show(self.store, item)

    def _note_unknown(self, resource: Resource, body: Any) -> None:
        """Record fields that AWX ignores, so that tests can reject a description that relies on them."""
        for name in set(body) - set(resource.fields) - _SENT_READ_ONLY:
            self.unknown_fields.append((resource.name, name))

    def _item(self, resource: Resource, key: str) -> Object:
        for item in self.store.objects[resource.name].values():
            named = "+" in key or resource.name == "users"
            if key == str(item["id"]) or (named and key == views.named_url(self.store, item)):
                return item
        raise Rejected({"detail": "Not found."}, 404)

    def _detail(self, request: Request, body: Any) -> Response:
        key = request.path_params["key"]
        if request.path_params["resource"] == "roles":
            if not key.isdigit() or int(key) not in self.store.roles:
                raise Rejected({"detail": "Not found."}, 404)
            return JSONResponse(views.show_role(self.store, int(key)))
        resource = self._resource(request)
        allowed = ["GET", "PUT", "PATCH", *(["DELETE"] if resource.deletable else []), "HEAD", "OPTIONS"]
        if request.method == "OPTIONS":
            return JSONResponse(views.options(resource.name), headers={"Allow": ", ".join(allowed)})
        if request.method not in allowed:
            raise Rejected({"detail": f'Method "{request.method}" not allowed.'}, 405)
        item = self._item(resource, key)
        if request.method == "DELETE":
            return actions.delete(self.store, resource, item)
        if resource.name == "project_updates":
            actions.finish_update(self.store, item, self.projects)
        if request.method in ("PUT", "PATCH"):
            self._update(resource, item, body)
        return JSONResponse(views.show(self.store, item))

    def _update(self, resource: Resource, item: Object, body: Any) -> None:
        changes = self.store.convert(resource, body, item)
        self._note_unknown(resource, body)
        new = {**{name: item.get(name) for name in resource.fields}, **changes}
        check(self.store, resource.name, new, item, body)
        self.store.check_unique(resource, new, item["id"])
        moved = resource.name == "projects" and any(
            item[name] != new[name] for name in ("scm_type", "scm_url", "scm_branch", "scm_refspec", "credential")
        )
        item.update(new)
        if moved:
            actions.start_update(self.store, item)

    def _sublist(self, request: Request, body: Any) -> Response:
        resource, name = self._resource(request), request.path_params["name"]
        if name == "launch" and request.method == "OPTIONS":
            # AWX describes the fields of a launch also for an ID that does not exist. Its command line relies on it.
            return JSONResponse(views.LAUNCH, headers={"Allow": "GET, POST, HEAD, OPTIONS"})
        item = self._item(resource, request.path_params["key"])
        if (resource.name, name, request.method) == ("users", "personal_tokens", "POST"):
            return JSONResponse(self._create(RESOURCES["tokens"], body, request), 201)
        if name in resource.lists:
            if request.method == "OPTIONS":
                described = views.options(resource.lists[name])
                described["actions"]["POST"]["id"] = {"type": "integer", "required": False, "label": "id"}
                return JSONResponse(described, headers={"Allow": "GET, POST, HEAD, OPTIONS"})
            if request.method == "POST":
                return actions.change_list(self.store, item, name, resource.lists[name], body)
            items = [self.store.objects[resource.lists[name]][key] for key in item["_lists"][name]]
            return self._page(request, items)
        if name in resource.children:
            kind, field = resource.children[name]
            if request.method == "OPTIONS":
                return JSONResponse(views.options(kind), headers={"Allow": "GET, POST, HEAD, OPTIONS"})
            return self._page(request, [found for found in self.store.all(kind) if found.get(field) == item["id"]])
        if name in ("object_roles", "roles"):
            return self._roles_of(request, item, name)
        return actions.act(self.store, item, name, request.method, body)

    def _roles_of(self, request: Request, item: Object, name: str) -> Response:
        keys = list(item["_roles"].values())
        if name == "roles":
            keys = [key for key, role in self.store.roles.items() if item["id"] in role.get(item["_resource"], [])]
        found = [views.show_role(self.store, key) for key in keys]
        return JSONResponse(queries.page(found, request.url.path, request.query_params.multi_items()))

    def _role_members(self, request: Request, body: Any) -> Response:
        key, name = request.path_params["key"], request.path_params["name"]
        if not key.isdigit() or int(key) not in self.store.roles or name not in ("teams", "users"):
            raise Rejected({"detail": "Not found."}, 404)
        role = self.store.roles[int(key)]
        if request.method == "POST":
            return actions.change_role(self.store, role, name, body)
        return self._page(request, [self.store.objects[name][member] for member in role[name]])
