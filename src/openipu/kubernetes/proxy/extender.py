# SPDX-License-Identifier: GPL-3.0-or-later
"""Scheduler extender: kube-scheduler asks which nodes have room for a pod with IPUs.

The answers come from the last round of the survey, so no answer waits for a V-IPU controller. Schedulers have no token
for the proxy, so the call is open, as ``/query`` is. It changes nothing.
"""

# Without ``from __future__ import annotations``: FastAPI evaluates annotations that name local functions.

from collections.abc import Callable, Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field, ValidationError

from openipu.kubernetes.domain import scheduling
from openipu.kubernetes.domain.controllers import Controller
from openipu.kubernetes.domain.scheduling import Room

PATH = "/scheduler/filter"
MAX_MIB = 1  # of a request; 5,000 names of nodes take at most 0.4 MiB

NodeLabels = Callable[[str], Mapping[str, str] | None]
"""Returns the labels of a node, None for an unknown one."""


# Names of fields are those of the scheduler's API, k8s.io/kube-scheduler/extender/v1.
class NodeList(BaseModel):
    """Nodes. Their labels decide."""

    items: list[dict[str, Any]] | None = None
    metadata: dict[str, Any] = {}


class ExtenderArgs(BaseModel):
    """A pod, and the nodes on which it fits otherwise: objects, or names if the extender is ``nodeCacheCapable``."""

    Pod: dict[str, Any]
    Nodes: NodeList | None = None
    NodeNames: list[str] | None = None


class ExtenderFilterResult(BaseModel):
    """Nodes with room, in the form of the request, and the reasons of the others."""

    Nodes: NodeList | None = None
    NodeNames: list[str] | None = None
    FailedNodes: dict[str, str] = Field({}, description="name of a node -> reason")
    Error: str = ""


def add_route(app: FastAPI, rooms: Callable[[], Mapping[Controller, Room]], labels: NodeLabels) -> None:
    """Add the call to an application. ``rooms``: see ``Survey.rooms``."""

    @app.post(
        PATH,
        summary="Filter nodes with room for a pod, for kube-scheduler",
        tags=["open"],
        responses={200: {"model": ExtenderFilterResult}},
        openapi_extra={"requestBody": {"content": {"application/json": {"schema": _arguments_schema()}}}},
    )
    async def filter_nodes(request: Request) -> Response:
        # Without FastAPI's conversions: for thousands of node objects, they take seconds, and copies of all objects.
        try:
            arguments = ExtenderArgs.model_validate_json(await request.body())
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            text = f"The body is no ExtenderArgs: {'.'.join(map(str, first['loc']))}: {first['msg']}."
            return JSONResponse({"reason": "Invalid", "message": text}, 422)
        try:
            found = answer(arguments, rooms(), labels)
        except (AttributeError, KeyError, TypeError) as error:
            text = (
                f"The pod or a node is incomplete: {type(error).__name__} {error}. Only schedulers call this address."
            )
            return JSONResponse({"reason": "Invalid", "message": text}, 422)
        return Response(found.model_dump_json(), media_type="application/json")


def answer(request: ExtenderArgs, rooms: Mapping[Controller, Room], labels: NodeLabels) -> ExtenderFilterResult:
    """Return the nodes with room. All nodes suit a pod without IPUs."""
    given = (request.Nodes.items if request.Nodes is not None else None) or []
    objects = {each["metadata"]["name"]: each for each in given}
    names = list(objects) if request.NodeNames is None else request.NodeNames
    try:
        size = scheduling.requested_ipus(request.Pod)
    except ValueError as error:
        rejected = dict.fromkeys(names, str(error))
        return _result(request, [], objects, rejected)
    if not size:
        return _result(request, names, objects, {})
    nodes = [(each, _labels(objects[each]) if each in objects else labels(each) or {}) for each in names]
    found = scheduling.select(nodes, size, rooms)
    return _result(request, list(found.suitable), objects, found.rejected)


def _arguments_schema() -> dict[str, Any]:
    """Return the schema of a request. Its nodes have the same component of the description as those of the answer."""
    schema = ExtenderArgs.model_json_schema(ref_template="#/components/schemas/{model}")
    del schema["$defs"]
    return schema


def _labels(node: Mapping[str, Any]) -> Mapping[str, str]:
    return node["metadata"].get("labels") or {}


def _result(
    request: ExtenderArgs, suitable: list[str], objects: Mapping[str, dict[str, Any]], rejected: Mapping[str, str]
) -> ExtenderFilterResult:
    if request.Nodes is None:
        return ExtenderFilterResult(NodeNames=suitable, FailedNodes=dict(rejected))
    nodes = NodeList(items=[objects[each] for each in suitable], metadata=request.Nodes.metadata)
    return ExtenderFilterResult(Nodes=nodes, FailedNodes=dict(rejected))
