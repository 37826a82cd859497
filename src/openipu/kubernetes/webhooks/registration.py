# SPDX-License-Identifier: GPL-3.0-or-later
"""Registration of the webhooks: the CA in their configurations, and the labels of namespaces."""

from __future__ import annotations

import base64
import copy
import http
from collections.abc import Iterable
from dataclasses import dataclass

import structlog

from openipu.kubernetes.cluster.client import NAMESPACES, ApiError, Client, Object, Resource

_log = structlog.get_logger("openipu.kubernetes.webhooks.registration")

_GROUP = "admissionregistration.k8s.io/v1"
CONFIGURATIONS = (
    Resource(_GROUP, "mutatingwebhookconfigurations", namespaced=False),
    Resource(_GROUP, "validatingwebhookconfigurations", namespaced=False),
)
_NAME_LABEL = "kubernetes.io/metadata.name"  # API servers set it from 1.21 on
SYSTEM_NAMESPACE = "kube-system"


@dataclass(frozen=True, slots=True)
class Publication:
    """Result of a publication: whether both configurations exist, and whether one of them was changed."""

    complete: bool
    changed: bool


async def publish(client: Client, name: str, bundle: bytes) -> Publication:
    """Write a CA bundle to the webhook configurations that exist. Raises ApiError."""
    text, complete, changed = base64.b64encode(bundle).decode(), True, False
    for resource in CONFIGURATIONS:
        found = await client.find(resource, "", name)
        if found is None:
            complete = False
            continue
        desired = _with_bundle(found, text)
        if desired != found:
            changed = True
            await client.replace(resource, desired)
            _log.info("CA of the webhooks published", configuration=name, kind=resource.plural)
    return Publication(complete, changed)


async def label_namespaces(client: Client, namespaces: Iterable[str]) -> None:
    """Label namespaces with their names, as newer API servers do, so that a selector can leave them out.

    Raises ApiError.
    """
    for name in namespaces:
        try:
            found = await client.find(NAMESPACES, "", name)
            if found is not None and _NAME_LABEL not in (found["metadata"].get("labels") or {}):
                await client.patch(NAMESPACES, "", name, {"metadata": {"labels": {_NAME_LABEL: name}}})
        except ApiError as error:
            if error.code != http.HTTPStatus.FORBIDDEN:
                raise
            _log.warning("namespace not labelled; webhooks may apply to it", namespace=name, error=str(error))


def _with_bundle(configuration: Object, text: str) -> Object:
    desired = copy.deepcopy(configuration)
    for webhook in desired.get("webhooks") or []:
        webhook["clientConfig"]["caBundle"] = text
    return desired
