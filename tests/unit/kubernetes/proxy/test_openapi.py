# SPDX-License-Identifier: GPL-3.0-or-later
"""The served description of the REST API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import sentinel

import pytest

from openipu.kubernetes.proxy import app, extender


def references(part: Any) -> Iterator[str]:
    """Yield all references in a part of a document."""
    if isinstance(part, dict):
        for name, value in part.items():
            if name == "$ref":
                yield value
            yield from references(value)
    elif isinstance(part, list):
        for each in part:
            yield from references(each)


def resolve(document: Any, reference: str) -> Any:
    """Return the part to which a reference points. Raises KeyError if there is none."""
    root, *keys = reference.split("/")
    assert root == "#", reference
    for key in keys:
        document = document[key.replace("~1", "/").replace("~0", "~")]
    return document


@pytest.mark.parametrize("has_extender", [False, True])
def test_every_reference_resolves(has_extender: bool) -> None:
    served = app.create(sentinel.reservations, sentinel.tracker, sentinel.survey, sentinel.accounts, ("ns", "operator"))
    if has_extender:
        extender.add_route(served, dict, lambda name: None)
    document = served.openapi()
    assert (extender.PATH in document["paths"]) == has_extender
    found = set(references(document))
    assert found
    for each in found:
        assert "properties" in resolve(document, each)


def test_the_body_of_the_extender_is_described() -> None:
    served = app.create(sentinel.reservations, sentinel.tracker, sentinel.survey, sentinel.accounts, ("ns", "operator"))
    extender.add_route(served, dict, lambda name: None)
    document = served.openapi()
    body = document["paths"][extender.PATH]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert set(body["properties"]) == {"Pod", "Nodes", "NodeNames"}
    (nodes,) = set(references(body))
    assert set(resolve(document, nodes)["properties"]) == {"items", "metadata"}
