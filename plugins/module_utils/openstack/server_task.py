# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the module openstack_pod_server does: ports first, then the servers that have them; and back."""

from __future__ import annotations

from ..reconcile import Action, Object, Report, SentenceError, Step, nothing_done, plan
from ..runner import Task, TaskError
from .attempts import Attempts, called
from .carrying import carried_out, telling
from .checks import check_asked
from .looking import check_offload, group_names, project_id
from .looking import look as look_at_networks
from .options import OPENSTACK, Run
from .planning import planned
from .reading import Seen, read
from .resources import NETWORK, PORT, SECURITY_GROUP, SUBNET
from .servers import OPTIONS, SERVER, port_name, ports, wanted
from .servers_cloud import Names, ServerWriter, look
from .wanted import match_ports
from .wanted import wanted as wanted_of_neutron
from .writing import Writer

_KINDS = [family.kind for family in (NETWORK, SUBNET, PORT, SECURITY_GROUP)]


def _server(run: Run) -> Object:
    params, cloud = run.params, run.transport
    asked = wanted(params)
    names = Names(cloud)
    project = _project(run)
    if project is None:
        return {"changed": False, PORT.plural: nothing_done(), SERVER.plural: nothing_done()}
    there = look(cloud, asked, names, project)
    _check_owners(there, params["pod"])
    seen, port_steps = _ports(run, asked, there, project)
    steps = _steps(params, asked, there)
    if not run.check_mode:
        if project != cloud.authorize():
            _check_removes([*port_steps, *steps], params["project"])
        _check_starts(steps, names)

    def port(name: str) -> str | None:
        return port_writer.id(PORT, name)

    port_writer = Writer(cloud, seen, params["pod"])
    server_writer = ServerWriter(cloud, names, params["pod"], params["wait_timeout"], port)
    plans: list[tuple[list[Step], Attempts]] = [(port_steps, port_writer), (steps, server_writer)]
    if params["state"] == "absent":
        plans.reverse()
    reports: list[Report] = []
    for each, writer in plans:
        report = carried_out(run, each, writer)
        reports.append(report)
        if report.failed:
            break
    result = _joined(reports)
    if result.pop("failed", False):
        raise TaskError(result.pop("msg"), **result)
    if params["state"] == "present":
        with telling(result):
            now = there if run.check_mode else look(cloud, asked, names, project)
        result["details"] = {
            item["name"]: {"id": item["uuid"], "status": item["status"], "addresses": item["addresses"]} for item in now
        }
    return result


def _project(run: Run) -> str | None:
    """The id of the project whose servers are meant; None when those of one that is not there are to go."""
    name, own = run.params["project"], run.transport.authorize()
    id = project_id(run.transport, name) if name else own
    if id is None and run.params["state"] == "present":
        raise TaskError("There is no project '%s': correct the name, or leave it out." % name)
    return id


def _check_removes(steps: list[Step], project: str) -> None:
    """Nova starts servers for who is logged in to their project only."""
    for step in steps:
        if step.action not in (Action.NONE, Action.DELETE):
            raise TaskError(
                "%s of project '%s' can be made or changed by who is logged in to that only: "
                "give auth its project_name, and the user a role there." % (called(step), project)
            )


def _check_starts(steps: list[Step], names: Names) -> None:
    """Refuse servers that cannot be started before they get ports."""
    for step in steps:
        if step.action in (Action.CREATE, Action.RECREATE):
            try:
                names.of(step.wanted or {})
            except SentenceError as error:
                raise TaskError("%s cannot be started: %s" % (called(step), error.sentence)) from error


def _ports(run: Run, asked: list[Object], there: list[Object], project: str) -> tuple[Seen, list[Step]]:
    """What has to be done to the ports of servers."""
    params = run.params
    config = {"ports": ports(asked)}
    objects = wanted_of_neutron(config, params["pod"])
    check_asked(objects)
    networks = {item["network"] for item in config["ports"]}
    seen = look_at_networks(run.transport, _KINDS, networks, (), params["pod"], group_names(config), project)
    read(seen, params["pod"])
    if params["state"] == "present":
        steps = planned(objects, seen, params["pod"], (), set())
        check_offload(run.transport, steps)
        return seen, steps
    match_ports([], seen, params["pod"])
    own = [item for item in seen.objects[PORT.kind] if item["owner"] == params["pod"]]
    return seen, plan(PORT, [], own, absent=_of_servers(own, seen, asked, {item["uuid"] for item in there}))


def _of_servers(own: list[Object], seen: Seen, asked: list[Object], ids: set[str]) -> list[str]:
    """The ports that these servers have, and those that were once made for them and nothing has."""
    devices = {raw["id"]: raw["device_id"] for raw in seen.raw[PORT.kind]}
    made_for = tuple(port_name(server, {"network": ""}) for server in asked)
    return [
        port["name"]
        for port in own
        if devices[port["uuid"]] in ids or (not devices[port["uuid"]] and port["name"].startswith(made_for))
    ]


def _check_owners(there: list[Object], owner: str) -> None:
    for item in there:
        if item["owner"] != owner:
            raise TaskError(
                "Server '%s' was not made for '%s': give this one another name, or remove that one."
                % (item["name"], owner)
            )


def _steps(params: Object, asked: list[Object], there: list[Object]) -> list[Step]:
    """One that could not be started is always made anew."""
    if params["state"] == "absent":
        return plan(SERVER, [], there, absent=[item["name"] for item in asked])
    broken = {item["name"] for item in there if not item["usable"]}
    steps: list[Step] = []
    for recreate, items in (
        (params["recreate"], [item for item in asked if item["name"] not in broken]),
        (True, [item for item in asked if item["name"] in broken]),
    ):
        steps += plan(SERVER, items, there, recreate=recreate)
    return steps


def _joined(reports: list[Report]) -> Object:
    """Ports and servers in one result."""
    result: Object = {"changed": False}
    diff: dict[str, Object] = {"before": {}, "after": {}}
    for report in reports:
        part = report.result()
        for side, told in part.pop("diff", {}).items():
            diff[side].update(told)
        changed = result["changed"] or part.pop("changed")
        result.update(part, changed=changed)
    if any(report.diff is not None for report in reports):
        result["diff"] = diff
    return result


OPENSTACK_POD_SERVER = Task(
    OPENSTACK,
    {
        **OPTIONS,
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "recreate": {"type": "bool", "default": False},
        "wait_timeout": {"type": "float", "default": 300.0},
    },
    _server,
)
