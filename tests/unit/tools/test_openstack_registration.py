# SPDX-License-Identifier: GPL-3.0-or-later
"""Registration of a service in Keystone after an interrupted start, with a fake Keystone."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from openipu.process.background import ProcessError
from tools.openstack.component import Component
from tools.openstack.prepare import register
from tools.openstack.site import Secrets, Site


class Keystone:
    """Objects by kind. All requests after the first ``left`` writes fail."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.left = 100
        self.objects: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.objects["projects"] = [{"id": "p1", "name": "service"}]
        self.objects["roles"] = [{"id": f"r-{name}", "name": name} for name in ("admin", "service")]
        self.associations: set[str] = set()

    def get(self, service: str, path: str) -> Any:
        url = urlsplit(path)
        kind = url.path.rpartition("/")[2]
        query = dict(parse_qsl(url.query))
        return {kind: [each for each in self.objects[kind] if query.items() <= each.items()]}

    def post(self, service: str, path: str, body: dict[str, Any]) -> Any:
        self._write()
        ((kind, item),) = body.items()
        names = [each.get("name") for each in self.objects[f"{kind}s"]]
        if kind == "user" and item["name"] in names:
            raise ProcessError("409 Conflict")
        self.objects[f"{kind}s"].append({"id": f"{kind}{len(names)}", **item})
        return {kind: self.objects[f"{kind}s"][-1]}

    def put(self, service: str, path: str) -> None:
        self._write()
        self.associations.add(path)

    def _write(self) -> None:
        if self.left == 0:
            raise ProcessError("interrupted")
        self.left -= 1


def test_an_interrupted_registration_continues(tmp_path: Path) -> None:
    site = Site(tmp_path, Secrets.generate())
    component = Component("ironic", "baremetal", "", [], {}, [], [])
    whole = Keystone(site)
    register(whole, component)  # type: ignore[arg-type]
    writes = 100 - whole.left
    assert writes == 7  # a user with two roles, a service and three endpoints
    for done in range(writes + 1):
        keystone = Keystone(site)
        keystone.left = done
        if done < writes:
            with pytest.raises(ProcessError, match="interrupted"):
                register(keystone, component)  # type: ignore[arg-type]
        keystone.left = 100
        register(keystone, component)  # type: ignore[arg-type]
        assert (keystone.objects, keystone.associations) == (whole.objects, whole.associations)
