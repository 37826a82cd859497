# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Event filter of ansible-rulebook: one event per alert of an Alertmanager notification."""

from __future__ import annotations

import typing as t

try:
    from ansible_collections.openipu.pod.plugins.module_utils.vipu.untemplated import untemplated
except ImportError:  # ansible-rulebook does not configure the import of collections
    from ansible.plugins.loader import init_plugin_loader

    init_plugin_loader()
    from ansible_collections.openipu.pod.plugins.module_utils.vipu.untemplated import untemplated

DOCUMENTATION = r"""
---
module: alertmanager_alerts
short_description: Split a notification of Alertmanager into alerts
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Alertmanager sends several alerts in one request. Rules and their rate limits need one event per alert.
  - Each event has the key C(alert), with C(name), C(status), C(fingerprint), C(starts_at), C(labels) and
    C(annotations). The key C(payload) is removed.
  - Other events are passed on.
  - In all texts, a space separates the delimiters of templates, such as C({{). So requests cannot pass templates to
    playbooks.
options: {}
"""

EXAMPLES = r"""
- eda.builtin.webhook:
    host: 127.0.0.1
    port: 5001
  filters:
    - openipu.pod.alertmanager_alerts:
"""


def main(event: dict[str, t.Any]) -> dict[str, t.Any] | list[dict[str, t.Any]]:
    """Return one event per alert, or the whole event when it is not from Alertmanager."""
    event = untemplated(event)
    payload = event.get("payload")
    alerts = payload.get("alerts") if isinstance(payload, dict) else None
    if not isinstance(alerts, list):
        return event
    rest = {key: value for key, value in event.items() if key != "payload"}
    # A copy of meta for each event, because ansible-rulebook adds to it.
    return [
        {**rest, "meta": dict(rest.get("meta") or {}), "alert": _alert(each)}
        for each in alerts
        if isinstance(each, dict)
    ]


def _alert(alert: dict[str, t.Any]) -> dict[str, t.Any]:
    labels = _texts(alert.get("labels"))
    return {
        "name": labels.get("alertname", ""),
        "status": str(alert.get("status", "")),
        "fingerprint": str(alert.get("fingerprint") or sorted(labels.items())),
        "starts_at": str(alert.get("startsAt", "")),
        "labels": labels,
        "annotations": _texts(alert.get("annotations")),
    }


def _texts(value: t.Any) -> dict[str, str]:
    return {str(key): str(text) for key, text in value.items()} if isinstance(value, dict) else {}
