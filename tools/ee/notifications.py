# SPDX-License-Identifier: GPL-3.0-or-later
"""Notifications of jobs: the custom subjects and bodies, as AWX renders them of its notification templates.

Source: ``JobNotificationMixin`` and the webhooks of AWX 24.6.1. A field that a job lacks is empty in a message.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import ChainableUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from openipu.process.background import ProcessError

from .jobs import Job

URL = "https://awx.example.com/#/jobs/playbook/1"  # of all jobs in their notifications


@dataclass(frozen=True)
class Notification:
    """A message that AWX sends. Parts with the default text of AWX are empty here.

    ``body`` of a webhook is the JSON object of its request.
    """

    name: str  # of the notification template
    subject: str
    body: str | dict[str, Any]


def notifications(
    templates: Mapping[str, Mapping[str, Any]], template: Mapping[str, Any], job: Job
) -> list[Notification]:
    """Return the notifications of a finished job.

    Args:
        templates: items of ``controller_notifications`` by name.
        template: job template of the job.
        job: the job.
    """
    event = "success" if job.status == "successful" else "error"
    names: Sequence[str] = template.get(f"notification_templates_{event}") or ()
    context = {"job": _fields(template, job), "job_friendly_name": "Job", "url": URL}
    return [_notification(templates[name], event, context) for name in names]


def _fields(template: Mapping[str, Any], job: Job) -> dict[str, Any]:
    """Return fields of a job that AWX allows in messages."""
    try:
        artifacts = job.artifacts
    except ProcessError:  # the job failed before its end
        artifacts = {}
    kept = {key: template.get(key) for key in ("name", "description", "playbook", "timeout", "verbosity")}
    return {
        **kept,
        "id": 1,
        "type": "job",
        "status": job.status,
        "failed": job.status == "failed",
        "artifacts": artifacts,
    }


def _notification(item: Mapping[str, Any], event: str, context: Mapping[str, Any]) -> Notification:
    texts = (item.get("messages") or {}).get(event) or {}
    environment = ImmutableSandboxedEnvironment(undefined=ChainableUndefined)
    subject, text = (environment.from_string(texts.get(part) or "").render(context) for part in ("message", "body"))
    body: str | dict[str, Any] = _json_object(text) if item["notification_type"] == "webhook" else text
    return Notification(item["name"], subject, body)


def _json_object(text: str) -> dict[str, Any]:
    """Return the body of a webhook, which is empty when the text is no JSON."""
    try:
        found = json.loads(text)
    except json.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}
