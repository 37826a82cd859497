# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of notification templates: what AWX rejects, and results that no job sets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from jinja2 import Environment, TemplateSyntaxError, nodes

from tests.awx.standin import messages
from tests.unit.collection.awx.checks import TEMPLATES, label, playbook_of
from tests.unit.collection.awx.content import Content, Item, Unsafe, named

_ENVIRONMENT = Environment()
_USES = "notification_templates_"


def notifications(content: Content) -> Iterator[str]:
    """Messages that AWX rejects or renders itself, bodies that are no JSON, and results that no job sets."""
    for item in content.notifications:
        place = label("notifications", item)
        own = item.get("messages") or {}
        problems = messages.errors(own, item["notification_type"])
        yield from (f"{place}: AWX rejects it: {problem}" for problem in problems)
        for event, name, text in _texts(own):
            if "{{" in text and not isinstance(text, Unsafe):
                yield f"{place}: {name} of {event} needs the tag !unsafe, because AWX renders it"
            if name == "body" and item["notification_type"] == "webhook" and not problems and not _is_object(text):
                yield f"{place}: body of {event} is no JSON object, so AWX sends an empty one"
        if not any(item["name"] in names for each in _users(content) for names in _uses(each).values()):
            yield f"{place}: nothing uses it"
    for item in _users(content):
        yield from _results(content, item)


def _results(content: Content, item: Item) -> Iterator[str]:
    """Results in messages that the jobs of a template do not set. Workflows have no results."""
    playbook = playbook_of(item)
    stats = playbook.stats if playbook else set()
    for event, names in _uses(item).items():
        for name in names:
            own = named(content.notifications).get(name, {}).get("messages") or {}
            used = {result for found, _name, text in _texts(own) if found == event for result in results(text)}
            for result in sorted(used - stats):
                yield f"'{item['name']}': message for {event} of '{name}' shows '{result}', which no job sets"


def results(template: str) -> set[str]:
    """Return the results of jobs that a message shows by name, such as ``job.artifacts.pod_drift``."""
    try:
        tree = _ENVIRONMENT.parse(template)
    except TemplateSyntaxError:
        return set()  # AWX rejects it
    found = set()
    for node in tree.find_all(nodes.Getattr):
        owner = node.node
        if isinstance(owner, nodes.Getattr) and owner.attr == "artifacts":
            found.add(node.attr)
    return found


def _users(content: Content) -> Iterator[Item]:
    for kind in TEMPLATES:
        yield from content.kinds.get(kind, [])


def _uses(item: Item) -> dict[str, list[str]]:
    """Return the names of the notification templates of a template, by event."""
    return {key.removeprefix(_USES): value for key, value in item.items() if key.startswith(_USES)}


def _texts(own: Any) -> Iterator[tuple[str, str, str]]:
    """Yield event, 'message' or 'body', and text of all messages that a notification template sets."""
    for event, parts in own.items() if isinstance(own, dict) else ():
        for name, text in parts.items() if isinstance(parts, dict) else ():
            if isinstance(text, str):
                yield event, name, text


def _is_object(template: str) -> bool:
    try:
        return isinstance(json.loads(messages.rendered(template)), dict)
    except ValueError:
        return False
