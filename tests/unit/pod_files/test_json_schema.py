# SPDX-License-Identifier: GPL-3.0-or-later
"""The JSON Schema of pod.yml and the loader agree."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from openipu.pod_files import json_schema
from openipu.shared.pod import spec
from openipu.shared.pod.load import PodError, load
from tests import ROOT
from tests.unit.collection.pod.conftest import PodFiles
from tests.unit.collection.pod.mistakes import test_pod_invalid_objects, test_pod_invalid_rack, test_pod_invalid_text

jsonschema = pytest.importorskip("jsonschema")  # not among the oldest supported releases

PUBLISHED = ROOT / "docs/reference/pod.schema.json"
VALIDATOR = jsonschema.Draft7Validator(json_schema.pod())
EXAMPLES = sorted(path for path in ROOT.glob("inventory/*/pod.yml"))
# Mistakes that a schema can express, by the message of the loader.
EXPRESSIBLE = re.compile(
    r"unknown key|unknown value of|invalid [\w ]+ '.*': use 1 to|must be a (list|mapping)"
    r"|is a truth value"
    r"|must be a (whole )?number|must be true or false|must be a single value"
    r"|exclude each other|(is|are) missing: add|has no value"
    r"|: use \d+ to \d+$"
)


def rejected(text: str) -> bool:
    """Return whether the schema rejects a document."""
    return not VALIDATOR.is_valid(yaml.safe_load(text))


@pytest.fixture
def pod(tmp_path):
    return PodFiles(tmp_path)


def agree(pod: PodFiles) -> None:
    """Compare the verdicts on an invalid POD."""
    with pytest.raises(PodError) as caught:
        load(str(pod.pod_yml))
    mistakes = [each for each in caught.value.mistakes if each.file == str(pod.pod_yml)]
    expressible = any(EXPRESSIBLE.search(each.message) for each in mistakes)
    assert rejected(pod.pod_yml.read_text()) == expressible, (str(caught.value), pod.pod_yml.read_text())


def test_the_schema_is_valid():
    jsonschema.Draft7Validator.check_schema(json_schema.pod())


def test_the_published_schema_is_current():
    assert json.loads(PUBLISHED.read_text()) == json_schema.pod(), f"Run: openipu-pod schema > {PUBLISHED}"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_examples_are_valid(path):
    load(str(path))
    assert list(VALIDATOR.iter_errors(yaml.safe_load(path.read_text()))) == []


@pytest.mark.parametrize(
    ("host", "valid"),
    [
        ("10.3.1.101", True),
        ("''", True),
        ("null", False),
        ("[vipu1]", True),
        ("[10.3.1.101, 10.3.1.102]", True),
        ("[]", False),
        ("[vipu1, vipu1]", False),
        ("[vipu1, null]", False),
        ("[vipu1, [vipu2]]", False),
        ("{name: vipu1}", False),
        ("'vipu1,vipu2'", False),
        ("[vipu1, 'a b']", False),
    ],
)
def test_hosts_of_the_controller(pod, host, valid):
    pod.write(rack_tail=", servers: [{name: s1, roles: [controller]}]")
    text = pod.pod_yml.read_text().replace("{host: 10.3.1.101}", f"{{host: {host}}}")
    pod.pod_yml.write_text(text)
    assert rejected(text) is not valid
    if valid:
        load(str(pod.pod_yml))
    else:
        with pytest.raises(PodError, match="controller: "):
            load(str(pod.pod_yml))


UNPARSED = ("is not YAML", "Remove the tag", "used twice in one mapping")


@pytest.mark.parametrize(
    ("tail", "message"),
    [(case[1], case[3]) for case in test_pod_invalid_objects.TAILS if not any(part in case[3] for part in UNPARSED)],
    ids=[case[0] for case in test_pod_invalid_objects.TAILS if not any(part in case[3] for part in UNPARSED)],
)
def test_objects(pod, tail, message):
    pod.write(tail=tail)
    agree(pod)


@pytest.mark.parametrize("networks", [case[0] for case in test_pod_invalid_rack.NETWORKS])
def test_networks(pod, networks):
    pod.write(networks=networks)
    agree(pod)


@pytest.mark.parametrize(
    ("racks", "cluster"),
    [case[1:3] for case in test_pod_invalid_rack.CLUSTERS],
    ids=[case[0] for case in test_pod_invalid_rack.CLUSTERS],
)
def test_clusters(pod, racks, cluster):
    pod.write(racks=racks, cluster=cluster)
    agree(pod)


@pytest.mark.parametrize("cable", [case[1] for case in test_pod_invalid_rack.CABLES])
def test_cables(pod, cable):
    pod.write(rack_tail=f", switches: [{{name: tor, kind: data}}, {{name: mgmt, kind: management}}], cables: [{cable}]")
    agree(pod)


@pytest.mark.parametrize("text", test_pod_invalid_text.INVALID)
@pytest.mark.parametrize("place", test_pod_invalid_text.TEXTS)
def test_texts(pod, place, text):
    path = pod.write()
    before, after = test_pod_invalid_text.TEXTS[place]
    content = path.read_text()
    path.write_text(
        content.replace(before, after % json.dumps(text), 1) if before else content + after % json.dumps(text)
    )
    assert rejected(path.read_text())


def _documents() -> st.SearchStrategy[Any]:
    """Return documents that are close to a POD."""
    keys = sorted({name for schema in vars(spec).values() if hasattr(schema, "declared") for name in schema.declared})
    scalars = st.none() | st.booleans() | st.integers(-1, 5000) | st.sampled_from(["a", "rack1", "-", "7", "é", "mesh"])
    return st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(keys), inner, max_size=3)
    )


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(spec.POD.declared)), _documents())
def test_the_schema_never_rejects_what_the_loader_accepts(tmp_path_factory, key, value):
    pod = PodFiles(tmp_path_factory.mktemp("any"))
    document = {**yaml.safe_load(pod.write().read_text()), key: value}
    pod.pod_yml.write_text(json.dumps(document))
    if rejected(pod.pod_yml.read_text()):
        with pytest.raises(PodError):
            load(str(pod.pod_yml))
