# SPDX-License-Identifier: GPL-3.0-or-later
"""AdmissionReview, versions v1 and v1beta1: requests of the API server and answers to them."""

from __future__ import annotations

import base64
import http
import json
from dataclasses import dataclass, field
from typing import Any

from openipu.kubernetes.cluster.client import Object
from openipu.kubernetes.domain.json_patch import Patch

_GROUP = "admission.k8s.io"
_VERSIONS = ("v1", "v1beta1")


class InvalidReviewError(Exception):
    """Raised when a body is no AdmissionReview."""

    error_code = "OPU603"


@dataclass(frozen=True, slots=True)
class Review:
    """An object that is created or changed. ``old``: its former version, None for a new one."""

    version: str
    uid: str
    operation: str
    namespace: str
    subresource: str
    new: Object | None
    old: Object | None


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer to a review. ``problems``: sentences; the object is rejected if there is one."""

    problems: list[str] = field(default_factory=list)
    patch: Patch = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def parse(body: bytes) -> Review:
    """Return the review of a request. Raises InvalidReviewError with a sentence."""
    try:
        review = json.loads(body)
        group, _, version = review["apiVersion"].partition("/")
        request = review["request"]
        if review["kind"] != "AdmissionReview" or group != _GROUP or version not in _VERSIONS:
            raise InvalidReviewError(
                f"The body is {review['kind']} {review['apiVersion']}. Send an AdmissionReview {_GROUP}/v1 or v1beta1."
            )
        return Review(
            version,
            request["uid"],
            request["operation"],
            request.get("namespace") or "",
            request.get("subResource") or "",
            _object(request.get("object")),
            _object(request.get("oldObject")),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InvalidReviewError(
            f"The body is no AdmissionReview: {type(error).__name__} {error}. Only API servers call this address."
        ) from None


def encode(review: Review, answer: Answer) -> dict[str, Any]:
    """Return the body of an answer."""
    response: dict[str, Any] = {"uid": review.uid, "allowed": not answer.problems}
    if answer.problems:
        # Not 422 Invalid: kubectl before 1.23 prints its message only with a list of fields.
        response["status"] = {
            "code": int(http.HTTPStatus.BAD_REQUEST),
            "reason": "BadRequest",
            "message": " ".join(answer.problems),
        }
    elif answer.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(json.dumps(answer.patch).encode()).decode()
    if answer.warnings and review.version == "v1":
        response["warnings"] = answer.warnings
    return {"apiVersion": f"{_GROUP}/{review.version}", "kind": "AdmissionReview", "response": response}


def _object(value: Any) -> Object | None:
    if value is None:
        return None
    if not isinstance(value.get("metadata"), dict):
        raise TypeError("an object without metadata")
    return dict(value)
