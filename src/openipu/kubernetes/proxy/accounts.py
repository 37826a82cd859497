# SPDX-License-Identifier: GPL-3.0-or-later
"""Callers of the proxy: the operator by its service account, and launchers and pods by the token of their pod."""

from __future__ import annotations

import asyncio
import hashlib
import time
from dataclasses import dataclass

from openipu.kubernetes.cluster.client import PODS, Client
from openipu.kubernetes.cluster.identity import bearer_token, review_token
from openipu.kubernetes.domain import reserved
from openipu.kubernetes.domain.tracking import Owner

_POD_NAME, _POD_UID = "authentication.kubernetes.io/pod-name", "authentication.kubernetes.io/pod-uid"
_ACCOUNT_PREFIX = "system:serviceaccount:"
_CACHE_SECONDS = 60.0
_CACHED = 10_000  # tokens
_REVIEWS = 16  # at the same time: calls with random tokens must not flood the API server


class UnauthenticatedError(Exception):
    """Raised for a call without a valid token."""

    error_code = "OPU610"


class ForbiddenError(Exception):
    """Raised for a caller that owns no partition."""

    error_code = "OPU607"


@dataclass(frozen=True, slots=True)
class Account:
    """Service account of a token, and the pod to which the token is bound."""

    namespace: str
    name: str
    pod: str = ""
    pod_uid: str = ""


class Accounts:
    """Accounts of tokens, which the API server verifies. Answers are kept for a minute."""

    def __init__(self, client: Client, audience: str = reserved.PROXY_AUDIENCE) -> None:
        self._client = client
        self._audience = audience
        self._known: dict[bytes, tuple[float, Account]] = {}
        self._reviews = asyncio.Semaphore(_REVIEWS)

    async def identify(self, authorization: str) -> Account:
        """Return the account of an Authorization header. Raises UnauthenticatedError and ApiError."""
        token = bearer_token(authorization)
        if not token:
            raise UnauthenticatedError("The call has no bearer token. Send the service account token of the pod.")
        now, digest = time.monotonic(), hashlib.sha256(token.encode()).digest()
        known = self._known.get(digest)
        if known is not None and now - known[0] < _CACHE_SECONDS:
            return known[1]
        async with self._reviews:
            account = await self._review(token)
        if len(self._known) >= _CACHED:
            self._known.clear()
        self._known[digest] = now, account
        return account

    async def owner(self, account: Account) -> tuple[Owner, int]:
        """Return the owner of the partition of a pod, and the instance. Raises ForbiddenError and ApiError."""
        pod = await self._client.find(PODS, account.namespace, account.pod) if account.pod else None
        if pod is None or pod["metadata"]["uid"] != account.pod_uid:
            raise ForbiddenError("The token belongs to no running pod. Use the token that is mounted in the pod.")
        metadata = pod["metadata"]
        labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
        for reference in metadata.get("ownerReferences") or []:
            is_job = reference["kind"] == "IPUJob" and reference["apiVersion"].startswith("graphcore.ai/")
            if is_job and labels.get(reserved.ROLE_LABEL) == reserved.LAUNCHER_ROLE:
                instance = labels.get(reserved.INSTANCE_LABEL, "0")
                if not (instance.isascii() and instance.isdecimal()):
                    raise ForbiddenError(
                        f"The label {reserved.INSTANCE_LABEL} of the pod is no number. Create the job again."
                    )
                return Owner("IPUJob", account.namespace, reference["name"], reference["uid"]), int(instance)
        if annotations.get(reserved.IPU_RESOURCE):
            return Owner("Pod", account.namespace, account.pod, account.pod_uid), 0
        raise ForbiddenError(
            f"Pod {account.namespace}/{account.pod} is neither a launcher nor a pod with IPUs. Request IPUs."
        )

    async def _review(self, token: str) -> Account:
        user = await review_token(self._client, token, self._audience)
        if user is None:
            raise UnauthenticatedError(
                "The token is invalid or has another audience. Use a token with audience gc-proxy."
            )
        if not user.name.startswith(_ACCOUNT_PREFIX):
            raise UnauthenticatedError("The token belongs to no service account. Use the token of a pod.")
        namespace, _, account = user.name.removeprefix(_ACCOUNT_PREFIX).partition(":")
        return Account(namespace, account, *((user.extra.get(each) or [""])[0] for each in (_POD_NAME, _POD_UID)))
