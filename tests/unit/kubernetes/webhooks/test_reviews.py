# SPDX-License-Identifier: GPL-3.0-or-later
"""AdmissionReview: bodies of requests and answers."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from openipu.kubernetes.webhooks import reviews
from openipu.kubernetes.webhooks.reviews import Answer, InvalidReviewError

VERSIONS = ("v1", "v1beta1")


def body(version: str = "v1", **request: Any) -> bytes:
    fields = {"uid": "1", "operation": "CREATE", "object": {"metadata": {}}, **request}
    review = {"apiVersion": f"admission.k8s.io/{version}", "kind": "AdmissionReview", "request": fields}
    return json.dumps(review).encode()


@pytest.mark.parametrize("version", VERSIONS)
def test_an_answer_has_the_version_and_uid_of_its_request(version: str) -> None:
    answer = reviews.encode(reviews.parse(body(version)), Answer())
    assert answer == {
        "apiVersion": f"admission.k8s.io/{version}",
        "kind": "AdmissionReview",
        "response": {"uid": "1", "allowed": True},
    }


def test_a_patch() -> None:
    patch = [{"op": "add", "path": "/a", "value": 1}]
    response = reviews.encode(reviews.parse(body()), Answer(patch=patch))["response"]
    assert response["patchType"] == "JSONPatch"
    assert json.loads(base64.b64decode(response["patch"])) == patch


def test_a_denial_has_no_patch() -> None:
    answer = Answer(["First.", "Second."], [{"op": "remove", "path": "/a"}])
    assert reviews.encode(reviews.parse(body()), answer)["response"] == {
        "uid": "1",
        "allowed": False,
        "status": {"code": 400, "reason": "BadRequest", "message": "First. Second."},
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_only_v1_has_warnings(version: str) -> None:
    response = reviews.encode(reviews.parse(body(version)), Answer(warnings=["Text."]))["response"]
    assert response.get("warnings") == (["Text."] if version == "v1" else None)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b"[" * 100_000,
        body("v2"),
        body(object=[]),
        body(object={"spec": {}}),
        b'{"apiVersion": 1, "kind": "AdmissionReview", "request": {}}',
        b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}',
    ],
)
def test_other_bodies_are_rejected(content: bytes) -> None:
    with pytest.raises(InvalidReviewError, match=r"^The body is .*\.$"):
        reviews.parse(content)
