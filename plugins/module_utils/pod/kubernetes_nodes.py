# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reader of the key ``kubernetes`` in pod.yml, and variables of the role ``ipu_operator`` from it."""

from __future__ import annotations

import typing as t

from . import model, spec
from .addresses import UniqueValues
from .forms import NODE_LABEL, NODE_NAME
from .mapping_schema import MappingSchema
from .mistakes import LeftOut, Mistakes, unknown
from .source import Block


def read(
    top: Block, racks: t.Sequence[model.Rack], hosts: t.Sequence[str], mistakes: Mistakes, left_out: LeftOut
) -> model.Kubernetes | None:
    """Return the nodes of Kubernetes, None when the key is missing. ``hosts``: of the controller. Record mistakes."""
    if top.get("kubernetes") is None:
        return None
    if len(hosts) > 1 and any(":" in host for host in hosts):
        message = "kubernetes: the operator accepts no IPv6 addresses of several hosts: write names in controller.host"
        mistakes.add(top.error(message, "kubernetes"))
    block = spec.POD.child(top, "kubernetes", mistakes)
    servers = [server.name for rack in racks for server in rack.servers if "poplar" in server.roles]
    label = ""
    nodes: tuple[str, ...] = ()
    if "name" not in top.invalid and "label" not in block.invalid:
        with mistakes.collect():
            label = _label(block, top["name"])
    if block.invalid.isdisjoint(("servers", "node_names")):
        with mistakes.collect():
            nodes = _nodes(block, servers, mistakes, left_out)
    return model.Kubernetes(label, nodes)


def controllers(pod: model.Pod, kubernetes: model.Kubernetes) -> list[dict[str, t.Any]]:
    """Return the V-IPU controller of a POD as the variable ``ipu_operator_controllers``."""
    return [
        {
            "host": "|".join(pod.controller_hosts),  # as the operator and its proxy parse several hosts
            "port": pod.controller_port,
            "label": kubernetes.label,
            "nodes": list(kubernetes.nodes),
        }
    ]


def _label(block: Block, pod: str) -> str:
    label = block.get("label") or "vipu-ctrl=%s" % pod
    if not NODE_LABEL.accepts(label):
        raise block.error("the name of the POD makes the invalid label '%s': set kubernetes.label" % label)
    return str(label)


def _nodes(block: Block, servers: t.Sequence[str], mistakes: Mistakes, left_out: LeftOut) -> tuple[str, ...]:
    """Return the names of the nodes: those in ``node_names``, or else the names of the servers."""
    chosen = block.get("servers") or ()
    known = [name for name in chosen if name in servers] if chosen else servers
    for name, line in zip(chosen, getattr(chosen, "lines", ()), strict=True):
        if name not in servers:
            error = block.error("kubernetes: %s" % unknown("Poplar server", name, servers, mistakes), "servers", line)
            mistakes.add(error.unless(left_out.servers or left_out.explains(name, "server")))
    if not (chosen or servers):
        message = "kubernetes: the POD has no server with the role 'poplar': add one, or omit 'kubernetes'"
        raise block.error(message).unless(left_out.servers)
    certain = not left_out.servers and len(known) == len(chosen or servers)
    names = block.get("node_names") or Block(block.file, block.line)
    keys = known if certain else [*known, *names]
    names = MappingSchema("node_names", {name: {"form": NODE_NAME} for name in keys}).read(names, mistakes)
    used = UniqueValues("node")
    nodes = []
    for server in known:
        if server in names.invalid:
            continue
        # kubelet uses the name of the host in lower case.
        node = names.get(server) or server.lower()
        with mistakes.collect():
            if not NODE_NAME.accepts(node):
                raise block.error("kubernetes: no node can have the name '%s': set it in 'node_names'" % node)
            used.take(node, "server '%s'" % server, names.error("", server))
            nodes.append(node)
    return tuple(nodes)
