# SPDX-License-Identifier: GPL-3.0-or-later
"""Page of the objects of the Helm chart, with diagrams of their references.

The source is the rendered chart of ``charts/kustomize``, which ``python -m tools.kubernetes chart`` writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from .markdown import page, paragraph, table

_RENDERED = Path(__file__).resolve().parents[2] / "charts" / "kustomize"
_INTRODUCTION = """
This page is for administrators of the [IPU operator](kubernetes-operator.md). It shows the objects of the
[Helm chart](../../charts/ipu-operator/README.md) with its default values, for the release `ipu-operator`.

An arrow leads from an object to an object that it names or selects. Rounded boxes are objects that the programs create
when they run.
"""
_ROLES = ("ClusterRole", "Role")
# Kinds of bindings, with the scope of the rights.
_BINDINGS = {"ClusterRoleBinding": "in all namespaces", "RoleBinding": "in its namespace"}
# Resources of roles whose named objects the programs create, with their kinds.
_CREATED = {"leases": "Lease", "secrets": "Secret", "configmaps": "ConfigMap"}


class Object(NamedTuple):
    """Kind and name of an object."""

    kind: str
    name: str


class Edge(NamedTuple):
    """Reference from one object to another, with its meaning."""

    source: Object
    target: Object
    text: str


def pages() -> dict[str, str]:
    """Return the page of the objects, by its path in docs/reference."""
    manifests = [
        manifest
        for name in ("crd.yaml", "operator.yaml")
        for manifest in yaml.safe_load_all((_RENDERED / name).read_text())
    ]
    return {"kubernetes-objects.md": page("Objects of the Helm chart", _INTRODUCTION, _parts(manifests))}


def _parts(manifests: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    running = [edge for each in manifests for edge in _references(each, manifests)]
    created = [edge for each in manifests for edge in _created(each, manifests)]
    yield "## Programs"
    yield paragraph("Services and policies select the pods of a Deployment by their labels.")
    yield _diagram("TD", [*running, *created], {edge.target for edge in created})
    yield "## Rights"
    yield paragraph("Each binding gives the rights of a role to the service account of a program.")
    yield _diagram("LR", [edge for each in manifests for edge in _rights(each)])
    yield table(("Role", "Resources", "Names", "Verbs"), [row for each in manifests for row in _rules(each)])
    yield "## List"
    yield table(("Kind", "Name", "Component"), [_row(each) for each in manifests])


def _row(manifest: Mapping[str, Any]) -> tuple[str, str, str]:
    component = manifest["metadata"].get("labels", {}).get("app.kubernetes.io/component", "")
    return manifest["kind"], f"`{manifest['metadata']['name']}`", component


def _object(manifest: Mapping[str, Any]) -> Object:
    return Object(manifest["kind"], manifest["metadata"]["name"])


def _references(manifest: Mapping[str, Any], others: Iterable[Mapping[str, Any]]) -> Iterator[Edge]:
    """Yield the references of an object, except those of rights."""
    source, spec = _object(manifest), manifest.get("spec", {})
    match manifest["kind"]:
        case "Service":
            yield from _selected(source, spec["selector"], others)
        case "NetworkPolicy":
            yield from _selected(source, spec["podSelector"]["matchLabels"], others)
        case "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration":
            for name in sorted({webhook["clientConfig"]["service"]["name"] for webhook in manifest["webhooks"]}):
                yield Edge(source, Object("Service", name), "calls")
        case "Deployment":
            yield from _of_pods(source, spec["template"]["spec"], others)


def _of_pods(source: Object, pods: Mapping[str, Any], others: Iterable[Mapping[str, Any]]) -> Iterator[Edge]:
    yield Edge(source, Object("ServiceAccount", pods["serviceAccountName"]), "runs as")
    for volume in pods.get("volumes", ()):
        if "configMap" in volume:
            yield Edge(source, Object("ConfigMap", volume["configMap"]["name"]), "mounts")
        if "secret" in volume:
            yield Edge(source, Object("Secret", volume["secret"]["secretName"]), "mounts")
    services = [_object(each) for each in others if each["kind"] == "Service"]
    arguments = [argument for container in pods["containers"] for argument in container.get("args", ())]
    for service in services:
        if any(f"//{service.name}." in argument for argument in arguments):
            yield Edge(source, service, "calls")


def _selected(source: Object, labels: Mapping[str, str], others: Iterable[Mapping[str, Any]]) -> Iterator[Edge]:
    for each in others:
        if each["kind"] == "Deployment" and labels.items() <= each["spec"]["template"]["metadata"]["labels"].items():
            yield Edge(source, _object(each), "selects")


def _created(manifest: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> Iterator[Edge]:
    """Yield the objects that a Deployment creates: its account may write them, and the chart does not have them."""
    if manifest["kind"] != "Deployment":
        return
    account = Object("ServiceAccount", manifest["spec"]["template"]["spec"]["serviceAccountName"])
    roles = {
        edge.target
        for each in others
        for edge in _rights(each)
        if each["kind"] in _BINDINGS and account in [_subject(subject) for subject in each["subjects"]]
    }
    existing = {_object(each) for each in others}
    for role in others:
        if _object(role) not in roles:
            continue
        for rule in role["rules"]:
            for resource in rule.get("resources", ()):
                for name in rule.get("resourceNames", ()):
                    target = Object(_CREATED.get(resource, ""), name)
                    if target.kind and target not in existing:
                        yield Edge(_object(manifest), target, "writes")


def _rights(manifest: Mapping[str, Any]) -> Iterator[Edge]:
    """Yield the references of a binding, as rights of its accounts."""
    if manifest["kind"] not in _BINDINGS:
        return
    role = Object(manifest["roleRef"]["kind"], manifest["roleRef"]["name"])
    for subject in manifest["subjects"]:
        yield Edge(_subject(subject), role, _BINDINGS[manifest["kind"]])


def _rules(manifest: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Yield the rules of a role, one row for each."""
    for rule in manifest.get("rules", ()) if manifest["kind"] in _ROLES else ():
        resources = [*rule.get("resources", ()), *rule.get("nonResourceURLs", ())]
        names, verbs = rule.get("resourceNames", ()), rule["verbs"]
        name = f"{manifest['kind']} `{manifest['metadata']['name']}`"
        yield name, _codes(resources), _codes(names), ", ".join(verbs)


def _codes(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _subject(subject: Mapping[str, str]) -> Object:
    return Object(subject["kind"], subject["name"])


def _diagram(direction: str, edges: Sequence[Edge], created: Iterable[Object] = ()) -> str:
    found = list(dict.fromkeys(each for edge in edges for each in (edge.source, edge.target)))
    names = {each: f"n{number}" for number, each in enumerate(found)}
    rounded = set(created)
    lines = [f"flowchart {direction}"]
    for each in found:
        left, right = ("([", "])") if each in rounded else ("[", "]")
        kind = each.kind.replace("WebhookConfiguration", "Webhook<br/>Configuration")  # to fit into its box
        lines.append(f'    {names[each]}{left}"{kind}<br/>{each.name}"{right}')
    lines += [f"    {names[edge.source]} -->|{edge.text}| {names[edge.target]}" for edge in edges]
    return "\n".join(["```mermaid", *lines, "```"])
