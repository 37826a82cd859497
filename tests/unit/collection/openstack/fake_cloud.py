# SPDX-License-Identifier: GPL-3.0-or-later
"""Fake cloud with configured responses, and a record of its requests."""

from __future__ import annotations

from typing import Any

from ansible_collections.openipu.pod.plugins.module_utils.openstack.common.client import Cloud, CloudError


class FakeCloud(Cloud):
    """Cloud whose ``responses`` are bodies by method and path. Requests consume a list of bodies up to the last one."""

    def __init__(self, responses: dict[str, Any], project: str = "p1") -> None:
        super().__init__({}, 4)
        self.responses = responses
        self.project = project
        self.microversion: tuple[int, int] | None = None
        self.reads: list[tuple[str, Any]] = []
        self.writes: list[tuple[str, Any]] = []

    def authorize(self) -> str:
        return self.project

    def identity(self) -> tuple[str, str]:
        return "u1", self.project

    def has_service(self, service: str) -> bool:
        return True

    def max_microversion(self, service: str) -> tuple[int, int] | None:
        return self.microversion

    def request(self, service: str, method: str, path: str, **options: Any) -> Any:
        key = f"{method} {path}"
        if method == "GET":
            self.reads.append((key, options.get("params")))
        else:
            self.writes.append((key, options.get("json")))
        response = self.responses.get(key)
        if isinstance(response, list):
            response = response.pop(0) if len(response) > 1 else response[0]
        if isinstance(response, CloudError):
            raise response
        if response is None and method == "GET":
            raise CloudError(f"{path} does not exist.", 404)
        return response
