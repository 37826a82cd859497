# SPDX-License-Identifier: GPL-3.0-or-later
"""Injection of IPUs into plain pods."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from openipu.kubernetes.domain import pod_injection
from tests.unit.kubernetes.domain.objects import OPTIONS

ADVERTISED = replace(OPTIONS, ipu_resource=True)
CONFIG = {"name": "IPUOF_CONFIG_PATH", "value": "/run/ipuof/ipuof.conf"}


def pod(ipus: str = "4", *containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "pod", "annotations": {"graphcore.ai/ipu": ipus}},
        "spec": {"containers": list(containers) or [container("main")], "dnsPolicy": "ClusterFirst", **spec},
    }


def container(name: str, limit: str | None = None, **fields: Any) -> dict[str, Any]:
    resources = {} if limit is None else {kind: {"graphcore.ai/ipu": limit} for kind in ("requests", "limits")}
    return {"name": name, "image": "image", "resources": resources, **fields}


def injected(given: dict[str, Any], options: Any = OPTIONS) -> dict[str, Any]:
    assert pod_injection.problems(given) == []
    before = copy.deepcopy(given)
    result = pod_injection.inject(given, options)
    assert given == before
    assert pod_injection.inject(result, options) == result
    return result


def with_ipus(found: dict[str, Any]) -> list[str]:
    """Return the names of the containers that find the configuration."""
    mount = {"name": "ipu-config", "mountPath": "/run/ipuof", "readOnly": True}
    return [
        each["name"]
        for each in found["spec"]["containers"]
        if CONFIG in each.get("env", []) and mount in each.get("volumeMounts", [])
    ]


def test_a_pod_waits_in_its_first_init_container() -> None:
    found = injected(pod(initContainers=[container("download")]))
    first, second = found["spec"]["initContainers"]
    assert (first["name"], first["image"], first["args"]) == ("ipu-init", "launcher:1", ["pod"])
    assert second == container("download")
    assert found["metadata"]["annotations"] == {"graphcore.ai/ipu": "4", "graphcore.ai/status": "injected"}
    assert found["metadata"]["labels"] == {"graphcore.ai/role": "pod"}
    assert pod_injection.ipus(found) == 4


def test_the_init_container_keeps_guaranteed_resources() -> None:
    resources = injected(pod())["spec"]["initContainers"][0]["resources"]
    assert resources["requests"] == resources["limits"]


def test_only_the_init_container_has_the_token() -> None:
    found = injected(pod())
    (volume,) = (each for each in found["spec"]["volumes"] if "projected" in each)
    users = [
        each["name"]
        for each in [*found["spec"]["initContainers"], *found["spec"]["containers"]]
        if any(mount["name"] == volume["name"] for mount in each["volumeMounts"])
    ]
    assert users == ["ipu-init"]


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ([container("a")], ["a"]),
        ([container("a"), container("b")], ["a", "b"]),
        ([container("a"), container("b", "4")], ["b"]),
        ([container("a", "2"), container("b", "2"), container("c")], ["a", "b"]),
    ],
)
@pytest.mark.parametrize("options", [OPTIONS, ADVERTISED])
def test_containers_with_a_limit_use_the_ipus(
    containers: list[dict[str, Any]], expected: list[str], options: Any
) -> None:
    found = injected(pod("4", *containers), options)
    assert with_ipus(found) == expected
    limits = [each["resources"].get("limits", {}).get("graphcore.ai/ipu") for each in found["spec"]["containers"]]
    total = sum(int(each) for each in limits if each)
    assert total == (4 if options.ipu_resource else 0)


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ({}, {"privileged": True}),
        ({"runAsUser": 1}, {"runAsUser": 1, "privileged": True}),
        ({"privileged": False}, {"privileged": False}),
        ({"allowPrivilegeEscalation": False}, {"allowPrivilegeEscalation": False}),
    ],
)
def test_containers_are_privileged_unless_they_say_otherwise(context: dict[str, Any], expected: dict[str, Any]) -> None:
    found = injected(pod("4", container("main", securityContext=context)))
    assert found["spec"]["containers"][0]["securityContext"] == expected


def test_the_network_of_the_host() -> None:
    assert injected(pod())["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"
    assert injected(pod(dnsPolicy="Default"))["spec"]["dnsPolicy"] == "Default"
    without = injected(pod(), replace(OPTIONS, host_network=False))["spec"]
    assert "hostNetwork" not in without and without["dnsPolicy"] == "ClusterFirst"


def test_pull_secrets_are_added_once() -> None:
    options = replace(OPTIONS, pull_secrets=("a", "b"))
    assert injected(pod(imagePullSecrets=[{"name": "a"}]), options)["spec"]["imagePullSecrets"] == [
        {"name": "a"},
        {"name": "b"},
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (pod("4", container("main", "8")), "request 8. Use the same number."),
        (pod("4", initContainers=[container("first", "4")]), "Init container first has a limit of graphcore.ai/ipu."),
        (pod("4", initContainers=[container("ipu-init")]), "spec has a container 'ipu-init', a name of the operator."),
        (pod("4", container("main", env=[CONFIG])), "Container main sets IPUOF_CONFIG_PATH, which the operator sets."),
        (pod("4", volumes=[{"name": "ipu-token"}]), "spec.volumes has the name 'ipu-token', which the operator uses."),
        (pod("٤"), "is '٤', which is no number of IPUs."),
        (pod("-4"), "is '-4', which is no number of IPUs."),
        (pod("4 "), "is '4 ', which is no number of IPUs."),
    ],
)
def test_problems(given: dict[str, Any], message: str) -> None:
    (problem,) = pod_injection.problems(given)
    assert message in problem


@pytest.mark.parametrize(
    ("annotations", "containers", "expected"),
    [
        ({"graphcore.ai/ipu": "4"}, [container("main")], True),
        ({}, [container("main", "4")], False),
        (None, [container("main")], False),
        ({"graphcore.ai/ipu": "4", "kubernetes.io/config.mirror": "x"}, [container("main")], False),
        ({"graphcore.ai/ipu": "4"}, None, False),
    ],
)
def test_pods_with_the_annotation(annotations: Any, containers: Any, expected: bool) -> None:
    given = {"metadata": {"annotations": annotations}, "spec": {"containers": containers}}
    assert pod_injection.is_requested(given) == expected


@pytest.mark.parametrize("containers", [None, [], [container("ipu-init")], [container("other")]])
def test_other_pods_have_no_ipus(containers: Any) -> None:
    assert pod_injection.ipus({"spec": {"initContainers": containers}}) is None
