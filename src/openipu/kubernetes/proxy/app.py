# SPDX-License-Identifier: GPL-3.0-or-later
"""REST API of the proxy.

``/health``, ``/stats`` and ``/query`` are open, as in Graphcore's operator. All other calls need a service account
token with audience gc-proxy: that of the operator, or that of a pod for its own partition.
"""

# Without ``from __future__ import annotations``: FastAPI evaluates annotations that name local functions.

from typing import Annotated, Any, Literal

from fastapi import Depends, FastAPI, Header, Response
from fastapi import Query as QueryParameter
from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse

from openipu.kubernetes.cluster.client import ApiError
from openipu.kubernetes.domain import tracking
from openipu.kubernetes.domain.controllers import Controller as ListedController
from openipu.kubernetes.domain.controllers import may_suit, suits
from openipu.kubernetes.domain.job import MAX_IPUS
from openipu.kubernetes.domain.tracking import Owner
from openipu.kubernetes.proxy.accounts import Account, Accounts, ForbiddenError, UnauthenticatedError
from openipu.kubernetes.proxy.controller import PartitionState
from openipu.kubernetes.proxy.messages import (
    Answer,
    Controller,
    Failure,
    IpuofConfig,
    Label,
    Partition,
    PodRequest,
    Query,
    Request,
    TrackedPartition,
    Usage,
)
from openipu.kubernetes.proxy.reservations import (
    ControllersUnavailableError,
    MissingPartitionError,
    NoCapacityError,
    NoControllerError,
    PartitionFailedError,
    Reservation,
    Reservations,
    TooLargeError,
)
from openipu.kubernetes.proxy.survey import Survey
from openipu.kubernetes.proxy.tracker import Tracker, TrackerError
from openipu.shared.vipu.client import VipuError
from openipu.shared.vipu.object_rules import is_power_of_two

OwnerKind = Literal["IPUJob", "Pod"]
Kind = Annotated[OwnerKind | None, QueryParameter(description="Owners of the partitions. Omit it for all of them.")]

_MAX_QUERY = (1 << 31) - 1  # V-IPU controllers accept 32 bits; larger partitions than MAX_IPUS do not fit

# Exception -> status and reason of the answer.
_FAILURES: dict[type[Exception], tuple[int, str]] = {
    UnauthenticatedError: (401, "Unauthenticated"),
    ForbiddenError: (403, "Forbidden"),
    MissingPartitionError: (404, "NotFound"),
    NoCapacityError: (409, "NoCapacity"),
    NoControllerError: (409, "NoController"),
    TooLargeError: (409, "TooLarge"),
    PartitionFailedError: (409, "PartitionFailed"),
    VipuError: (502, "Rejected"),
    ControllersUnavailableError: (503, "Unavailable"),
    TrackerError: (503, "Unavailable"),
    ApiError: (503, "Unavailable"),
}
_DOCUMENTED: dict[int | str, dict[str, Any]] = {
    code: {"model": Failure, "description": reason} for code, reason in dict(_FAILURES.values()).items()
}


def create(
    reservations: Reservations, tracker: Tracker, survey: Survey, accounts: Accounts, operator: tuple[str, str]
) -> FastAPI:
    """Return the application. ``operator``: namespace and name of the service account that may do everything."""
    app = FastAPI(title="V-IPU proxy", version="1", description=__doc__, docs_url=None, redoc_url=None)
    for kind in _FAILURES:
        app.add_exception_handler(kind, _failure)

    async def identify(authorization: Annotated[str, Header()] = "") -> Account:
        return await accounts.identify(authorization)

    async def require_operator(account: Annotated[Account, Depends(identify)]) -> None:
        if (account.namespace, account.name) != operator:
            raise ForbiddenError("Only the operator may change partitions of jobs. Change the IPUJob instead.")

    as_operator = [Depends(require_operator)]
    caller = Annotated[Account, Depends(identify)]

    @app.get("/health", summary="Check that the proxy runs", tags=["open"])
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/stats", summary="Count the used and available IPUs", tags=["open"])
    async def stats() -> dict[str, Usage]:
        free = survey.free
        used = tracking.used_ipus(tracker)
        found = {namespace: Usage(used=count, available=free) for namespace, count in used.items()}
        return {**found, "total": Usage(used=sum(used.values()), available=free)}

    @app.post("/query", summary="Count the further partitions of a size", tags=["open"])
    async def query(request: Query) -> Answer:
        if request.size > _MAX_QUERY or not is_power_of_two(request.size):
            text = f"A partition cannot have {request.size} IPUs. Use a power of two up to {MAX_IPUS}."
            return Answer(available=False, numOfPartitions=0, message=text)
        counts, failures = await survey.fits(request.size)
        if failures and not counts:
            return Answer(available=False, numOfPartitions=0, message=failures[0])
        return Answer(available=True, numOfPartitions=sum(counts), message="")

    @app.get(
        "/v1/partitions",
        summary="List all partitions, or those of jobs or of pods",
        tags=["operator"],
        dependencies=as_operator,
        response_model=list[TrackedPartition],
        responses=_DOCUMENTED,
    )
    async def list_partitions(kind: Kind = None) -> Response:
        # Encoded without models: a list is read every few seconds, and has thousands of partitions.
        found = [
            {
                "id": each.id,
                "kind": each.owner.kind,
                "namespace": each.owner.namespace,
                "name": each.owner.name,
                "uid": each.owner.uid,
                "instance": each.instance,
                "size": each.size,
                "controller": each.controller,
                "state": survey.state(each),
            }
            for each in tracker
            if each.phase is tracking.Phase.RESERVED and kind in (None, each.owner.kind)
        ]
        return JSONResponse(found)

    job = "/v1/jobs/{namespace}/{name}"

    @app.put(
        job + "/partitions/{instance}",
        summary="Reserve the partition of an instance",
        tags=["operator"],
        dependencies=as_operator,
        responses=_DOCUMENTED,
    )
    async def reserve(namespace: str, name: str, instance: int, request: Request) -> Partition:
        owner = Owner("IPUJob", namespace, name, request.uid)
        selector = request.nodeSelector
        found = await reservations.reserve(
            owner,
            instance,
            request.size,
            request.workers,
            usable=lambda client: may_suit(client.controller.node_label, selector),
        )
        return _partition(found, routing=await found.client.routing(found.record.id, found.record.size))

    @app.post(
        job + "/partitions/{instance}/reset",
        summary="Reset the partition of an instance, and wait until it is ACTIVE",
        tags=["operator"],
        dependencies=as_operator,
        responses=_DOCUMENTED,
    )
    async def reset(namespace: str, name: str, instance: int, uid: str) -> Partition:
        found = await reservations.reset(Owner("IPUJob", namespace, name, uid), instance)
        return _partition(found, PartitionState("ACTIVE"))

    @app.delete(
        job + "/partitions",
        summary="Release the partitions of a job, or of one instance",
        description="202: they will be released as soon as their V-IPU controllers respond. 204: they are released.",
        tags=["operator"],
        dependencies=as_operator,
        responses=_DOCUMENTED,
        status_code=204,
    )
    async def release(namespace: str, name: str, uid: str, instance: int | None = None) -> Response:
        done = await reservations.release(uid, instance, seconds=20)
        return Response(status_code=204 if done else 202)

    @app.get(
        "/v1/controllers",
        summary="List the V-IPU controllers in the order in which they are tried",
        tags=["operator"],
        dependencies=as_operator,
        responses=_DOCUMENTED,
    )
    async def list_controllers() -> list[Controller]:
        return [Controller(address=each.address, nodeLabel=_label(each)) for each in reservations.controllers()]

    pod = "/v1/pods/{namespace}/{name}/partition"

    @app.put(
        pod,
        summary="Reserve the partition of a pod, at a controller of its node",
        tags=["operator"],
        dependencies=as_operator,
        responses=_DOCUMENTED,
    )
    async def reserve_for_pod(namespace: str, name: str, request: PodRequest) -> Partition:
        labels = request.nodeLabels
        found = await reservations.reserve(
            Owner("Pod", namespace, name, request.uid),
            instance=0,
            size=request.size,
            workers=1,
            usable=lambda client: suits(client.controller.node_label, labels),
        )
        return _partition(found)

    @app.delete(
        pod,
        summary="Release the partition of a pod",
        description="202: it will be released as soon as its V-IPU controller responds. 204: it is released.",
        tags=["operator"],
        dependencies=as_operator,
        responses=_DOCUMENTED,
        status_code=204,
    )
    async def release_of_pod(namespace: str, name: str, uid: str) -> Response:
        return Response(status_code=204 if await reservations.release(uid, seconds=20) else 202)

    @app.put(
        "/v1/self/partition",
        summary="Create the partition of the calling launcher, or reset it if it exists",
        tags=["pods"],
        responses=_DOCUMENTED,
    )
    async def create_own(account: caller) -> Partition:
        owner, instance = await accounts.owner(account)
        return _partition(await reservations.reset(owner, instance), PartitionState("ACTIVE"))

    @app.get(
        "/v1/self/partition", summary="Read the partition of the calling pod", tags=["pods"], responses=_DOCUMENTED
    )
    async def get_own(account: caller) -> Partition:
        owner, instance = await accounts.owner(account)
        found, state = await reservations.status(owner, instance)
        return _partition(found, state)

    @app.delete(
        "/v1/self/partition",
        summary="Release the partition of the calling launcher",
        description=(
            "202: it will be released as soon as its V-IPU controller responds. 204: it is released. Call it at the "
            "end of a launcher: if the launcher runs for a minute more, its job has lost the partition."
        ),
        tags=["pods"],
        responses=_DOCUMENTED,
        status_code=204,
    )
    async def release_own(account: caller) -> Response:
        owner, instance = await accounts.owner(account)
        if owner.kind != "IPUJob":
            raise ForbiddenError("Only launchers release their partition. That of a pod is released when the pod ends.")
        return Response(status_code=204 if await reservations.release_own(owner, instance, seconds=20) else 202)

    @app.get(
        "/v1/self/ipuof",
        summary="Read the IPUoF configuration of the partition of the calling pod",
        description="Workers of jobs read it from the V-IPU controller, because each one has a GCD of its own.",
        tags=["pods"],
        responses=_DOCUMENTED,
    )
    async def get_own_ipuof(account: caller) -> IpuofConfig:
        owner, instance = await accounts.owner(account)
        if owner.kind != "Pod":
            raise ForbiddenError(
                "Pods of jobs cannot read their IPUoF configuration here. Read it from the V-IPU controller."
            )
        found, _ = await reservations.status(owner, instance)
        return IpuofConfig(partition=found.record.id, config=await found.client.ipuof_config(found.record.id))

    return app


def _label(controller: ListedController) -> Label | None:
    label = controller.node_label
    return None if label is None else Label(key=label[0], value=label[1])


def _partition(found: Reservation, state: PartitionState | None = None, routing: str = "") -> Partition:
    controller = found.client.controller
    return Partition(
        id=found.record.id,
        size=found.record.size,
        host=found.client.host,
        port=controller.port,
        nodeLabel=_label(controller),
        routing=routing,
        state="" if state is None else state.state,
        errors=[] if state is None else list(state.errors),
    )


async def _failure(request: HttpRequest, error: Exception) -> JSONResponse:
    status, reason = next(each for kind, each in _FAILURES.items() if isinstance(error, kind))
    return JSONResponse({"reason": reason, "message": str(error)}, status)
