# SPDX-License-Identifier: GPL-3.0-or-later
"""Users of tokens, and their rights, which the API server reviews."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from openipu.kubernetes.cluster.client import ACCESS_REVIEWS, TOKEN_REVIEWS, Client


@dataclass(frozen=True, slots=True)
class User:
    """User of a token. ``extra``: for example the pod to which a service account token is bound."""

    name: str
    uid: str
    groups: tuple[str, ...]
    extra: Mapping[str, Sequence[str]]


def bearer_token(authorization: str) -> str:
    """Return the token of an Authorization header, empty if it has none."""
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


async def review_token(client: Client, token: str, audience: str = "") -> User | None:
    """Return the user of a token, None if it is invalid. The default audience is the API server. Raises ApiError."""
    review = await client.create(
        TOKEN_REVIEWS,
        {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "metadata": {},
            "spec": {"token": token, **({"audiences": [audience]} if audience else {})},
        },
    )
    status = review.get("status") or {}
    if not status.get("authenticated") or (audience and audience not in (status.get("audiences") or [])):
        return None
    user = status.get("user") or {}
    return User(user.get("username", ""), user.get("uid", ""), tuple(user.get("groups") or ()), user.get("extra") or {})


async def may_get(client: Client, user: User, path: str) -> bool:
    """Return whether a user has the right to get a path that is no resource, such as ``/metrics``. Raises ApiError."""
    review = await client.create(
        ACCESS_REVIEWS,
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "metadata": {},
            "spec": {
                "user": user.name,
                "uid": user.uid,
                "groups": list(user.groups),
                "extra": {name: list(values) for name, values in user.extra.items()},
                "nonResourceAttributes": {"path": path, "verb": "get"},
            },
        },
    )
    return bool((review.get("status") or {}).get("allowed"))
