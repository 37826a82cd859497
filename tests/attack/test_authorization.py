# SPDX-License-Identifier: GPL-3.0-or-later
"""Every method of every service, called by every kind of caller of a secure controller."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from openipu.shared.vipu.client import ACCESS_KEY_METADATA, USER_ID_METADATA
from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.vipu.api import auth
from openipu.vipu.domain.model import Put, Role
from openipu.vipu.tls import issue, load
from tests.integration.faults import hostile
from tests.integration.vipu_servers import InProcess, Machines, partition, release_shares, wait_active

HEALTH = hostile.methods(health_pb2.DESCRIPTOR.services_by_name["Health"])
PUBLIC = [
    *hostile.methods(virmgrpc.service("VersionService")),
    *(method for method in HEALTH if not method.path.endswith("/List")),  # the controller does not serve it
]
REFLECTION = hostile.methods(reflection_pb2.DESCRIPTOR.services_by_name["ServerReflection"])
TENANT = hostile.methods(virmgrpc.service("UserService"), admin.service("TenantService"))
ADMIN = hostile.methods(admin.service("AdminService"))
REJECTED = {grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED}
OWN, FOREIGN, SPARE, ABSENT = "own", "foreign", "spare", "nothing"

Metadata = tuple[tuple[str, str | bytes], ...]
Outcome = tuple[grpc.StatusCode, str]


def credentials(user: str, key: str) -> Metadata:
    return (USER_ID_METADATA, user), (ACCESS_KEY_METADATA, key)


class SecurePod:
    """Secure controller with two tenants. The objects of each have the id ``own`` or ``foreign``.

    The machine of agent and cluster ``spare`` is in no allocation. User ``everywhere`` may use all allocations.
    """

    def __init__(self, server: InProcess, machines: Machines) -> None:
        self.server = server
        root, key = auth.new_user("root", Role.ADMIN, (), shared_certificate=True)
        server.server.controller.submit(lambda state: ([Put(root)], None)).result(10)
        self.root = credentials("root", key)
        request = admin.ApplyRequest(
            agents=[
                admin.AgentSpec(id=id, host=agent.host, port=agent.port, take_over=True)
                for id, agent in zip((OWN, FOREIGN, SPARE), machines.agents, strict=False)
            ],
            clusters=[admin.ClusterSpec(id=id, agent_ids=[id]) for id in (OWN, FOREIGN, SPARE)],
            allocations=[admin.AllocationSpec(id=id, cluster_id=id, size=1) for id in (OWN, FOREIGN)],
            users=[
                *(admin.UserSpec(id=id, allocation_ids=[id]) for id in (OWN, FOREIGN)),
                admin.UserSpec(id="homeless"),
                admin.UserSpec(id="everywhere", all_allocations=True),
                admin.UserSpec(id="removed", allocation_ids=[OWN]),
            ],
        )
        keys = server.admin.Apply(request, metadata=self.root, timeout=10).access_keys
        release_shares(server, metadata=self.root)
        self.tenant = credentials(OWN, keys[OWN])
        self.homeless = credentials("homeless", keys["homeless"])
        self.everywhere = credentials("everywhere", keys["everywhere"])
        for id in (OWN, FOREIGN):
            server.user.CreatePartition(partition(id, 1, id), metadata=credentials(id, keys[id]), timeout=10)
            wait_active(server, id, metadata=self.root)
        server.admin.RemoveUser(admin.RemoveRequest(id="removed"), metadata=self.root, timeout=10)
        self.strangers: dict[str, Metadata] = {
            "no credentials": (),
            "an unknown user": credentials("unknown", keys[OWN]),
            "a wrong key": credentials(OWN, "AAAAAAAAAAA"),
            "the key of another user": credentials(FOREIGN, keys[OWN]),
            "a removed user": credentials("removed", keys["removed"]),
            "an id without a key": credentials(OWN, "")[:1],
            "a key without an id": credentials("", keys[OWN])[1:],
            "an id in capitals": credentials(OWN.upper(), keys[OWN]),
            "a key with a blank": credentials(OWN, keys[OWN] + " x"),
            "a cut key": credentials(OWN, keys[OWN][:-1]),
            "two ids": (*credentials("root", keys[OWN]), *credentials(OWN, "")[:1]),
        }

    def call(self, method: hostile.Method, metadata: Metadata, message: Any) -> Outcome:
        return method.call(self.server.channel, message.SerializeToString(), 10, metadata)

    def records(self) -> str:
        """Return all records, as an administrator sees them."""
        state = self.server.server.controller.state
        return repr([state.agents, state.clusters, state.allocations, state.partitions, state.users])


@pytest.fixture
def secure_pod(vipu_server: Callable[..., InProcess], machines: Machines, tmp_path: Path) -> SecurePod:
    certs = tmp_path / "vipu-certs"
    issue.create(certs, ["127.0.0.1"])
    files = [(certs / "client" / name).read_bytes() for name in ("client.key", "client.crt")]
    channel = grpc.ssl_channel_credentials((certs / "server" / load.CA).read_bytes(), *files)
    server = vipu_server(channel=channel, credentials=load.server_credentials(certs), shared_certificates=True)
    return SecurePod(server, machines)


def requests(method: hostile.Method, id: str) -> Iterator[Any]:
    """Yield an empty request, and one that names objects with this id only."""
    yield method.request()
    yield hostile.plausible(method.request, id)


def everybody(authenticator: Any, *_: Any) -> auth.Caller:
    """Accept every caller as an administrator."""
    return auth.UNAUTHENTICATED_ADMINISTRATOR


@pytest.mark.defence("openipu.vipu.api.auth.Authenticator.__call__", everybody)
@pytest.mark.defence("openipu.vipu.api.auth.Authenticator.check_certificate", everybody)
def test_strangers_can_read_version_and_health_only(secure_pod: SecurePod) -> None:
    before = secure_pod.records()
    for name, metadata in secure_pod.strangers.items():
        for method in (*TENANT, *ADMIN, *REFLECTION):
            for request in requests(method, OWN):
                code, _ = secure_pod.call(method, metadata, request)
                assert code is grpc.StatusCode.UNAUTHENTICATED, f"{method.path} by {name}"
        for method in PUBLIC:
            assert secure_pod.call(method, metadata, method.request())[0] is grpc.StatusCode.OK
    assert secure_pod.records() == before


def all_rights(user: Any) -> auth.Caller:
    """Give every user the rights of an administrator."""
    return auth.Caller(user.id)


@pytest.mark.defence("openipu.vipu.api.auth._caller", all_rights)
def test_tenants_cannot_administer(secure_pod: SecurePod) -> None:
    before = secure_pod.records()
    for metadata in (secure_pod.tenant, secure_pod.homeless, secure_pod.everywhere):
        for method in ADMIN:
            for request in requests(method, OWN):
                code, _ = secure_pod.call(method, metadata, request)
                assert code is grpc.StatusCode.PERMISSION_DENIED, method.path
    assert secure_pod.records() == before
    for method in (*PUBLIC, *TENANT, *ADMIN):  # the rights are the cause: an administrator can call everything
        code, details = secure_pod.call(method, secure_pod.root, hostile.plausible(method.request, ABSENT))
        assert code not in REJECTED | hostile.BROKEN, f"{method.path}: {details}"


@pytest.mark.defence("openipu.vipu.api.auth._caller", all_rights)
def test_tenants_cannot_distinguish_foreign_from_missing_objects(secure_pod: SecurePod) -> None:
    before = secure_pod.records()
    for metadata in (secure_pod.tenant, secure_pod.homeless):
        for method in TENANT:
            responses = []
            for id in (FOREIGN, ABSENT):
                request = hostile.plausible(method.request, id)
                if method.path.endswith("/CreatePartition"):
                    request.requirements.id = "new"  # partition ids are unique across tenants; the docs say so
                code, details = secure_pod.call(method, metadata, request)
                responses.append((code, details.replace(id, "")))
            assert responses[0] == responses[1], method.path
    assert secure_pod.records() == before


@pytest.mark.defence("openipu.vipu.api.auth._caller", all_rights)
def test_tenants_get_no_ipus_outside_of_their_allocations(secure_pod: SecurePod) -> None:
    """Without an allocation, an empty foreign one would be the best fit. A hidden one changes no message."""
    create = next(method for method in TENANT if method.path.endswith("/CreatePartition"))
    remove = virmgrpc.RemovePartitionRequest(partition_id=FOREIGN)
    secure_pod.server.user.RemovePartition(remove, metadata=secure_pod.root, timeout=10)
    before = secure_pod.records()
    whole, small = (partition("new", size, "") for size in (4, 1))
    code, message = secure_pod.call(create, secure_pod.tenant, whole)
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert f"allocation '{OWN}' has 3 free IPUs" in message and FOREIGN not in message
    for request in (whole, small):
        assert secure_pod.call(create, secure_pod.homeless, request) == (
            grpc.StatusCode.NOT_FOUND,
            "Cannot create partition 'new': there is no allocation that you may use. Ask an administrator.",
        )
    for cluster in (FOREIGN, ABSENT):
        foreign = partition("new", 1, OWN, cluster_id=cluster)
        assert secure_pod.call(create, secure_pod.tenant, foreign) == (
            grpc.StatusCode.INVALID_ARGUMENT,
            f"Cannot create partition 'new': allocation '{OWN}' is in cluster '{OWN}', not in '{cluster}'. "
            "Omit the cluster.",
        )
    assert secure_pod.records() == before
    assert secure_pod.call(create, secure_pod.tenant, small)[0] is grpc.StatusCode.OK
    assert secure_pod.server.server.controller.state.partitions["new"].allocation == OWN


def administrators_of_all(user: Any) -> auth.Caller:
    """Give users of all allocations the rights of an administrator."""
    every = user.all_allocations or user.role is Role.ADMIN
    return auth.Caller(user.id, None if every else frozenset(user.allocations))


@pytest.mark.defence("openipu.vipu.api.auth._caller", administrators_of_all)
def test_users_of_all_allocations_get_nothing_outside_of_allocations(secure_pod: SecurePod) -> None:
    before = secure_pod.records()
    for method in TENANT:
        responses = []
        for id in (SPARE, ABSENT):
            request = hostile.plausible(method.request, id)
            if method.path.endswith("/CreatePartition"):
                request.requirements.allocation_id = ""
            code, details = secure_pod.call(method, secure_pod.everywhere, request)
            responses.append((code, details.replace(id, "")))
        assert responses[0] == responses[1], method.path
    listed = secure_pod.server.user.ListIPUAttributes(
        virmgrpc.ListIPUAttributesRequest(), metadata=secure_pod.everywhere, timeout=10
    )
    assert [entry.agent for entry in listed.entries] == [FOREIGN, OWN]
    assert secure_pod.records() == before


@pytest.mark.defence("openipu.vipu.api.auth._caller", all_rights)
def test_users_of_all_allocations_use_them_like_their_tenants(secure_pod: SecurePod) -> None:
    """They get the same response as the tenant of each allocation, also of one that is created later."""
    server, root = secure_pod.server, secure_pod.root
    later = admin.AllocationSpec(id=SPARE, cluster_id=SPARE, size=1)
    server.admin.CreateAllocation(admin.CreateAllocationRequest(spec=later), metadata=root, timeout=10)
    server.user.CreatePartition(partition(SPARE, 1, SPARE), metadata=secure_pod.everywhere, timeout=10)
    wait_active(server, SPARE, metadata=root)
    for metadata, found in (
        (secure_pod.everywhere, [FOREIGN, OWN, SPARE]),
        (secure_pod.tenant, [OWN]),
        (secure_pod.homeless, []),
    ):
        allocations = server.tenant.ListAllocations(admin.ListAllocationsRequest(), metadata=metadata, timeout=10)
        partitions = server.user.ListPartitions(virmgrpc.ListPartitionsRequest(), metadata=metadata, timeout=10)
        assert [each.spec.id for each in allocations.allocations] == found
        assert [each.id for each in partitions.partitions] == found
    for method in TENANT:
        if method.path.rpartition("/")[2].startswith(("Get", "CountFits", "ListIPUAttributes")):
            request = hostile.plausible(method.request, OWN)
            responses = [secure_pod.call(method, who, request) for who in (secure_pod.everywhere, secure_pod.tenant)]
            assert responses[0] == responses[1], method.path
            assert responses[0][0] not in REJECTED | {grpc.StatusCode.NOT_FOUND}, method.path


RIGHTS: dict[str, tuple[dict[str, Any], list[str]]] = {  # name -> fields of a user, visible partitions
    "none": ({}, []),
    "one": ({"allocation_ids": [FOREIGN]}, [FOREIGN]),
    "all": ({"all_allocations": True}, [FOREIGN, OWN]),
}
EACH_CHANGE = ("none", "one", "all", "none", "all", "one", "none")

_caller = auth._caller
_first_callers: dict[str, auth.Caller] = {}


def first_rights(user: Any) -> auth.Caller:
    """Keep the rights that a user had with the first call."""
    return _first_callers.setdefault(user.id, _caller(user))


@pytest.mark.defence("openipu.vipu.api.auth._caller", first_rights)
def test_changed_rights_apply_to_the_next_call(secure_pod: SecurePod) -> None:
    """A list that is empty is never a user of all allocations, neither on creation nor after a change."""
    apply, list_partitions = secure_pod.server.admin.Apply, secure_pod.server.user.ListPartitions
    for first in RIGHTS:
        id, metadata = f"first-{first}", None
        for name in (first, *EACH_CHANGE):
            rights, visible = RIGHTS[name]
            request = admin.ApplyRequest(users=[admin.UserSpec(id=id, **rights)])
            keys = apply(request, metadata=secure_pod.root, timeout=10).access_keys
            metadata = metadata or credentials(id, keys[id])
            found = list_partitions(virmgrpc.ListPartitionsRequest(), metadata=metadata, timeout=10)
            assert [each.id for each in found.partitions] == visible, f"{id} with {name}"


def no_check(*_: Any) -> None:
    """Check nothing, in place of ``_check_usable``."""


@pytest.mark.defence("openipu.vipu.domain.explicit_placement._check_usable", no_check)
def test_listed_ipus_reveal_nothing_of_other_tenants(secure_pod: SecurePod, machines: Machines) -> None:
    """An IPU of another tenant has the same response as one that does not exist, also in a shared cluster."""
    near, far = (
        admin.AgentSpec(id=id, host=each.host, port=each.port, take_over=True)
        for id, each in zip(("near", "far"), machines.agents[3:5], strict=True)
    )
    shared = admin.ApplyRequest(
        agents=[near, far],
        clusters=[admin.ClusterSpec(id="shared", agent_ids=["near", "far"])],
        allocations=[admin.AllocationSpec(id=id, cluster_id="shared", agent_ids=[id]) for id in ("near", "far")],
        users=[admin.UserSpec(id=OWN, allocation_ids=[OWN, "near"])],
    )
    reply = secure_pod.server.admin.Apply(shared, metadata=secure_pod.root, timeout=10)
    assert reply.applied, reply.results
    create = next(method for method in TENANT if method.path.endswith("/CreatePartition"))
    before = secure_pod.records()

    def response(cluster: str, first: int) -> Outcome:
        """Return the response to a list of an IPU of the tenant and another one, without the number of the latter."""
        ipus = [virmgrpc.PartitionIpu(topology_id=number) for number in (0, first)]
        request = partition("new", 2, "", cluster_id=cluster, ipus=ipus)
        code, details = secure_pod.call(create, secure_pod.tenant, request)
        return code, details.replace(f"IPU {first} ", "IPU ").replace(cluster, "")

    foreign = response("shared", 4)
    assert foreign == response("shared", 8) == response("shared", 1 << 20)
    assert foreign == (
        grpc.StatusCode.NOT_FOUND,
        "Cannot create partition 'new': IPU of IPU-Link domain 0 (index 1 of the list) is in no allocation that you "
        "may use. Choose another.",
    )
    assert response(FOREIGN, 1) == response(ABSENT, 1)
    assert secure_pod.records() == before
    assert response("shared", 1)[0] is grpc.StatusCode.OK
