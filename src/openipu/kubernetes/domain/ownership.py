# SPDX-License-Identifier: GPL-3.0-or-later
"""Owners of the objects of jobs. A name may be in use by an object of another owner, or of an earlier job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def owner(thing: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return name and UID of the job to which an object belongs."""
    for each in thing["metadata"].get("ownerReferences") or []:
        if each["kind"] == "IPUJob" and each["apiVersion"].startswith("graphcore.ai/"):
            return each["name"], each["uid"]
    return None


def conflict(thing: Mapping[str, Any]) -> str:
    """Return why an object with a name of a job is in the way, a sentence. Objects of earlier jobs disappear soon."""
    metadata, job = thing["metadata"], owner(thing)
    text = f"{thing.get('kind', 'Pod')} {metadata['namespace']}/{metadata['name']} exists and belongs to "
    if job is not None:
        return f"{text}an earlier IPUJob {job[0]}. It will be deleted soon."
    return f"{text}no IPUJob. Delete it, or choose another name for the job."


def not_created(pod: Mapping[str, Any]) -> str:
    """Return why a pod of a job that another operator has created is in the way, a sentence."""
    metadata = pod["metadata"]
    return f"Pod {metadata['namespace']}/{metadata['name']} of the job was not created by this operator. Delete it."
