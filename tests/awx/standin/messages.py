# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages of notification templates, and why AWX 24.6.1 rejects some.

Source: ``NotificationTemplateSerializer.validate_messages``. AWX renders each message with a sample job, which has no
results. A message that reads a result without a default is rejected.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jinja2 import StrictUndefined
from jinja2.exceptions import SecurityError, TemplateSyntaxError, UndefinedError
from jinja2.sandbox import ImmutableSandboxedEnvironment

EVENTS = ("started", "success", "error", "workflow_approval")
APPROVALS = ("running", "approved", "timed_out", "denied")


def _texts(*names: str) -> dict[str, str]:
    return dict.fromkeys(names, "text")


def _numbers(*names: str) -> dict[str, int]:
    return dict.fromkeys(names, 1)


def _flags(*names: str) -> dict[str, bool]:
    return dict.fromkeys(names, False)


# Fields of the sample job. The values differ from those of AWX.
_SUMMARY = {
    "created_by": {"id": 1, **_texts("username", "first_name", "last_name")},
    "instance_group": {"id": 1, "name": "text"},
    "inventory": {
        **_texts("name", "description", "kind"),
        **_numbers("id", "organization_id", "total_hosts", "total_groups", "total_inventory_sources"),
        **_numbers("hosts_with_active_failures", "inventory_sources_with_failures"),
        **_flags("has_active_failures", "has_inventory_sources"),
    },
    "job_template": {"id": 1, **_texts("name", "description")},
    "labels": {"count": 0, "results": []},
    "project": {"id": 1, **_texts("name", "description", "scm_type", "status")},
    "schedule": {"id": 1, **_texts("name", "description", "next_run")},
    "unified_job_template": {"id": 1, **_texts("name", "description", "unified_job_type")},
}
_JOB: dict[str, Any] = {
    **_texts("controller_node", "created", "custom_virtualenv", "description", "execution_node", "job_explanation"),
    **_texts("job_tags", "job_type", "launch_type", "limit", "modified", "name", "playbook", "scm_branch"),
    **_texts("scm_revision", "skip_tags", "start_at_task", "started", "status", "type", "url"),
    **_numbers("elapsed", "forks", "id", "job_slice_count", "job_slice_number", "timeout", "verbosity"),
    **_flags("allow_simultaneous", "diff_mode", "failed", "finished", "force_handlers", "use_fact_cache"),
    "artifacts": {},
    "host_status_counts": _numbers("skipped", "ok", "changed", "failures", "dark", "failed", "processed", "rescued"),
    "summary_fields": _SUMMARY,
}
_CONTEXT = {
    **_texts("job_friendly_name", "url", "approval_status", "approval_node_name", "workflow_url", "job_metadata"),
    "job": _JOB,
}


class _Undefined(StrictUndefined):
    """An undefined field, whose error is its name."""

    __slots__ = ()
    __repr__ = __str__ = StrictUndefined._fail_with_undefined_error

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._undefined_hint = self._undefined_name


def rendered(template: str) -> str:
    """Return a message for the sample job. Raises errors of Jinja."""
    return ImmutableSandboxedEnvironment(undefined=_Undefined).from_string(template).render(_CONTEXT)


def errors(messages: Any, kind: str) -> list[str]:
    """Return why AWX rejects the messages of a notification template of this kind; empty if it accepts them."""
    if not isinstance(messages, dict):
        return [f"Expected dict for 'messages' field, found {type(messages)}"]
    found: list[str] = []
    collected: list[str] = []
    for event, parts in messages.items():
        found += _structure(event, parts, collected)
    found += [problem for template in collected for problem in _problems(template)]
    if kind == "webhook":
        found += list(_webhook_problems(messages))
    return found


def _structure(event: str, parts: Any, collected: list[str]) -> Iterator[str]:
    """Yield problems of the structure, and collect the templates."""
    if event not in EVENTS:
        yield f"Event '{event}' invalid, must be one of 'started', 'success', 'error', or 'workflow_approval'"
    elif parts is None:
        pass
    elif not isinstance(parts, dict):
        yield f"Expected dict for event '{event}', found {type(parts)}"
    elif event != "workflow_approval":
        yield from _texts_of(event, parts, collected)
    else:
        for state, texts in parts.items():
            if state not in APPROVALS:
                allowed = "'running', 'approved', 'timed_out', or 'denied'"
                yield f"Workflow Approval event '{state}' invalid, must be one of {allowed}"
            elif texts is not None and not isinstance(texts, dict):
                yield f"Expected dict for workflow approval event '{state}', found {type(texts)}"
            else:
                yield from _texts_of(event, texts or {}, collected)


def _texts_of(event: str, texts: dict[str, Any], collected: list[str]) -> Iterator[str]:
    for name, template in texts.items():
        if name not in ("message", "body"):
            yield f"Message type '{name}' invalid, must be either 'message' or 'body'"
        elif template is None:
            pass
        elif not isinstance(template, str):
            yield f"Expected string for '{name}', found {type(template)}, "
        elif name == "message" and "\n" in template:
            yield f"Messages cannot contain newlines (found newline in {event} event)"
        else:
            collected.append(template)


def _problems(template: str) -> Iterator[str]:
    try:
        rendered(template)
    except TemplateSyntaxError as error:
        yield f"Unable to render message '{template}': {error.message}"
    except UndefinedError as error:
        yield f"Field '{error.message}' unavailable"
    except SecurityError as error:
        yield f"Security error due to field '{error.message}'"


def _webhook_problems(messages: dict[str, Any]) -> Iterator[str]:
    for event, parts in messages.items():
        body = parts.get("body") if isinstance(parts, dict) else None
        try:
            rendered(body or "")
        except Exception as error:
            yield f"Webhook body for '{event}' is not valid. The following gave an error ({error})."
