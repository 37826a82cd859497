# SPDX-License-Identifier: GPL-3.0-or-later
"""A cloud that gives the answers it was told, and notes what it was asked and what was written to it."""

from __future__ import annotations

from typing import Any

from ansible_collections.openipu.pod.plugins.module_utils.openstack.client import Cloud, CloudError


class Answers(Cloud):
    """``told`` are bodies by method and path; of a list each request takes one, and the last one stays."""

    def __init__(self, told: dict[str, Any], project: str = "p1") -> None:
        super().__init__({}, 4)
        self.told = told
        self.project = project
        self.asked: list[tuple[str, Any]] = []
        self.written: list[tuple[str, Any]] = []

    def authorize(self) -> str:
        return self.project

    def has(self, service: str) -> bool:
        return True

    def request(self, service: str, method: str, path: str, **options: Any) -> Any:
        place = f"{method} {path}"
        if method == "GET":
            self.asked.append((place, options.get("params")))
        else:
            self.written.append((place, options.get("json")))
        answer = self.told.get(place)
        if isinstance(answer, list):
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        if isinstance(answer, CloudError):
            raise answer
        if answer is None and method == "GET":
            raise CloudError(f"there is no {path}.", 404)
        return answer
