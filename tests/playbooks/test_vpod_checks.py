# SPDX-License-Identifier: GPL-3.0-or-later
"""Existing objects that the creation of a vPOD rejects. The controller is real; OpenStack is not needed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openipu.pod.plugins.module_utils.vipu.object_rules import ID_RULE

from tests import ROOT
from tests.integration.collection.playbook import results
from tests.integration.vipu_servers import InProcess, pod

ROLE = ROOT / "roles/vpod/tasks"
ID = "0" * 32  # of a removed project
VARIABLES: dict[str, Any] = {
    "vpod_name": "red",
    "vpod_tenant": "research",
    "vpod_partition": "red",
    "vpod_tenant_settings": {},
    "vpod_orphaned": False,
}


def checks_of_owner(tasks: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the tasks that include the check of the owner."""
    for task in tasks:
        if task.get("ansible.builtin.include_tasks", {}).get("file") == "owner.yml":
            yield task
        yield from checks_of_owner(task.get("block", []))


def check_owner(server: InProcess, folder: Path, entry: str, record: dict[str, Any], *options: str) -> list[str]:
    """Run the check of an entry point of the role with the record of the vPOD, and return the errors."""
    [_, read] = yaml.safe_load((ROLE / "read_existing.yml").read_text())
    without_cloud = [read, *yaml.safe_load((ROLE / "owner.yml").read_text())[1:]]
    assert "openipu.pod.openstack" not in json.dumps(without_cloud)
    (folder / "owner.yml").write_text(yaml.safe_dump(without_cloud))
    check = next(checks_of_owner(yaml.safe_load((ROLE / entry).read_text())))
    include = {"ansible.builtin.include_tasks": str(folder / "owner.yml"), "vars": check.get("vars", {})}
    done = results(
        folder,
        [{"ansible.builtin.set_fact": {"vpod_record": record}}, {**include, "ignore_errors": True}],
        *options,
        controller=dict(zip(("api_host", "api_port"), server.address.rsplit(":", 1), strict=True)),
        **VARIABLES,
    )
    return [str(result["msg"]) for result in done if result["failed"]]


@pytest.fixture
def server(vipu_server: Callable[..., InProcess]) -> InProcess:
    server = vipu_server()
    pod(server, machines=2, allocations={"red": 1})
    return server


@pytest.mark.parametrize(
    ("entry", "option", "rejected"),
    [
        ("main.yml", None, True),
        ("main.yml", True, True),  # an option of an earlier destruction
        ("destroy.yml", None, True),
        ("destroy.yml", True, False),
    ],
)
def test_the_allocation_of_others_is_rejected(
    server: InProcess, tmp_path: Path, entry: str, option: bool | None, rejected: bool
) -> None:
    options = [] if option is None else ["--extra-vars", json.dumps({"vpod_orphaned": option})]
    messages = check_owner(server, tmp_path, entry, {"tags": {"removed": []}, "other_projects": []}, *options)
    assert [message.startswith("Cannot use the name 'red' for a vPOD of") for message in messages] == [True] * rejected


@pytest.mark.parametrize("entry", ["main.yml", "destroy.yml"])
@pytest.mark.parametrize(
    ("own", "others", "error"),
    [
        (
            [],
            ["team-b"],
            "Cannot use the name 'red' for a vPOD of 'research': project 'team-b' has a vPOD of this name. Nothing was "
            "changed. Set vpod_name or vpod_tenant to another value.",
        ),
        (
            ["red"],
            ["team-b"],
            "Cannot use vPOD 'red' of 'research': project 'team-b' has a record of the name too, which an interrupted "
            "order has left. Nothing was changed. Remove the record of each project that has no such vPOD, with: "
            "openstack project set --remove-tag openipu.pod=red PROJECT",
        ),
        (["red"], [], ""),
        ([], [], ""),
    ],
)
def test_the_vpod_of_another_project_is_rejected(
    vipu_server: Callable[..., InProcess], tmp_path: Path, entry: str, own: list[str], others: list[str], error: str
) -> None:
    """Its partition may have been removed by its user, and its allocation may have another name."""
    server = vipu_server()
    record = {"tags": {"removed": own}, "other_projects": others}
    messages = check_owner(server, tmp_path, entry, record, "--extra-vars", '{"vpod_orphaned": true}')
    assert messages == [error] * bool(error)


@pytest.mark.parametrize(
    ("created", "others", "rejected"),
    [
        (["red"], ["team-b"], True),  # the other run recorded its vPOD first, or at the same time
        (["red"], [], False),  # the other run records its vPOD later, sees this one and stops
        ([], ["team-b"], False),  # the vPOD existed before this run
    ],
)
def test_a_concurrent_order_of_another_project_stops(
    tmp_path: Path, created: list[str], others: list[str], rejected: bool
) -> None:
    main = yaml.safe_load((ROLE / "main.yml").read_text())[0]["block"]
    names = [task["name"] for task in main]
    [check] = [task for task in main if task.get("ansible.builtin.include_tasks", {}).get("file") == "revert_name.yml"]
    record, next_write = "Record the vPOD in the project of the tenant", "Allocate IPU-Machines"
    assert names.index(record) + 1 == names.index(check["name"]) == names.index(next_write) - 1
    remove, *rest = yaml.safe_load((ROLE / "revert_name.yml").read_text())
    assert remove["openipu.pod.openstack_pod_tenant"]["state"] == "absent"
    (tmp_path / "revert_name.yml").write_text(yaml.safe_dump([{**task, "ignore_errors": True} for task in rest]))
    include = {"ansible.builtin.include_tasks": str(tmp_path / "revert_name.yml"), "when": check["when"]}
    recorded = {"changed": True, "tags": {"created": created}, "other_projects": others}
    left = {"ansible.builtin.debug": {"msg": "{{ vpod_recorded == {} }}"}}
    done = results(tmp_path, [include, left], **VARIABLES, vpod_recorded=recorded)
    message = (
        "Cannot use the name 'red' for a vPOD of 'research': a concurrent run recorded a vPOD of this name in project "
        "'team-b'. This run created nothing else, and has removed its record. The other run may have done the same. "
        "Set vpod_name to another value, or run the playbook again."
    )
    assert [result["msg"] for result in done if result["failed"]] == [message] * rejected
    assert done[-1]["msg"] is rejected


@pytest.mark.parametrize(
    ("status", "change", "rejected"),
    [
        ("ERROR", "unchanged", True),
        ("ERROR", "recreated", False),
        ("ACTIVE", "unchanged", False),
        ("", "created", False),
    ],
)
@pytest.mark.parametrize("vm", ["poplar", "controller"])
def test_a_failed_vm_with_data_is_rejected(tmp_path: Path, vm: str, status: str, change: str, rejected: bool) -> None:
    name = f"red-{vm}"
    plan = {
        "servers": {"created": [], "recreated": [], "unchanged": [], change: [name]},
        "details": {name: {"id": "5f0b", "status": status}} if status else {},
    }
    check = yaml.safe_load((ROLE / f"plan_{vm}_vm.yml").read_text())[-1]
    check["ansible.builtin.include_tasks"]["file"] = str(ROLE / "reject_failed_vm.yml")
    variables = {**VARIABLES, f"vpod_{vm}": {"name": name}, f"vpod_{vm}_plan": plan}
    done = results(tmp_path, [{**check, "ignore_errors": True}], **variables)
    messages = [str(result["msg"]) for result in done if result["failed"]]
    assert len(messages) == rejected
    for message in messages:
        assert message.startswith(f"Cannot use VM '{name}' of vPOD 'red': it ran before, and now has the status ERROR.")
        assert "(openstack server delete 5f0b)" in message


@pytest.mark.parametrize(
    ("options", "revoked"),
    [
        ({}, ["data"]),
        ({"vpod_tenant_id": ID}, ["data"]),
        ({"vpod_tenant_id": ID, "vpod_orphaned": True}, ["data", "control"]),
        ({"vpod_tenant_id": "", "vpod_orphaned": True}, ["data"]),
    ],
)
def test_shares_of_a_removed_project_are_revoked(tmp_path: Path, options: dict[str, Any], revoked: list[str]) -> None:
    """Neutron keeps them, and reports the ID in place of the name."""
    tasks = yaml.safe_load((ROLE / "destroy.yml").read_text())[0]["block"]
    revoke = next(task for task in tasks if task["name"] == "Revoke the shares of the tenant")
    projects = {"data": "research", "control": ID, "storage": "other"}
    shares = [{"kind": "network", "name": name, "project": project} for name, project in projects.items()]
    [result] = results(
        tmp_path,
        [{"ansible.builtin.debug": {"msg": revoke["openipu.pod.openstack_pod_network"]["config"]["shares"]}}],
        vpod_neutron={"shares": shares},
        pod_openstack_config={"shares": []},
        **{**VARIABLES, **options},
    )
    assert [share["name"] for share in result["msg"] if share["state"] == "absent"] == revoked


@pytest.mark.parametrize(
    ("sizes", "rejected"), [({"red": 4}, True), ({"red": 8}, False), ({"redder": 4}, False), ({}, False)]
)
def test_another_size_is_rejected_before_the_allocation_is_resized(
    tmp_path: Path, sizes: dict[str, int], rejected: bool
) -> None:
    entries = yaml.safe_load((ROLE / "main.yml").read_text())[0]["block"]
    names = [task["name"] for task in entries]
    check = "Validate the size of an existing partition"
    # The rollback of AWX keeps an existing vPOD, and nothing is written before.
    assert names.index("Publish whether the vPOD is new") < names.index(check) < names.index("Allocate IPU-Machines")
    found = {"partitions": [{"id": name, "size": size} for name, size in sizes.items()]}
    [task] = yaml.safe_load((ROLE / "validate_size.yml").read_text())
    [result] = results(tmp_path, [{**task, "ignore_errors": True}], vpod_existing=found, vpod_ipus="8", **VARIABLES)
    assert result["failed"] is rejected
    if rejected:
        assert result["msg"] == (
            "Cannot change vPOD 'red': its partition 'red' has 4 IPUs, and vpod_ipus is 8. Nothing was changed. "
            "Correct vpod_ipus, or destroy the vPOD first."
        )


@pytest.mark.parametrize("share_is_new", [False, True])
@pytest.mark.parametrize("option", [False, True])
@pytest.mark.parametrize("playbook", ["vpod_rollback.yml", "vpod_destroy.yml"])
def test_the_share_is_deleted_only_on_request(tmp_path: Path, playbook: str, option: bool, share_is_new: bool) -> None:
    """A rollback deletes only a share of the failed job. An option of the command line does not change that."""
    tasks = {task["name"]: task for task in yaml.safe_load((ROLE / "destroy.yml").read_text())[0]["block"]}
    of_role = yaml.safe_load((ROLE.parent / "vars/main.yml").read_text())
    of_playbook = yaml.safe_load((ROOT / "playbooks" / playbook).read_text())[0]["vars"]
    names = ["Delete the share of the Poplar VM", "Revoke the access to the kept share"]
    done = results(
        tmp_path,
        [{"ansible.builtin.debug": {"msg": name}, "when": tasks[name]["when"]} for name in names],
        *["--extra-vars", json.dumps({"vpod_share_delete": option, "vpod_share_is_new": share_is_new})],
        **{**of_role, **of_playbook, **VARIABLES, "vpod_record": {"tags": {"removed": ["red"]}}},
    )
    deleted = share_is_new if playbook == "vpod_rollback.yml" else option
    assert [result["msg"] for result in done] == [names[0] if deleted else names[1]]


USERS = [
    {"id": "root", "role": "admin", "allocations": []},
    {"id": "boss", "role": "admin", "allocations": ["red"]},
    {"id": "new", "role": "user", "allocations": ["red"]},
    {"id": "two", "role": "user", "allocations": ["red", "blue"]},
    {"id": "none", "role": "user", "allocations": []},
    {"id": "all", "role": "user", "allocations": ["*"]},
    {"id": "listed", "role": "user", "allocations": ["red"]},
    {"id": "before", "role": "user", "allocations": ["red"]},
]
POD_USERS = [{"id": "listed", "role": "user", "allocations": []}, {"id": "later", "role": "admin", "allocations": []}]


@pytest.mark.parametrize(
    ("user", "state", "allocations"),
    [
        ("root", "present", []),
        ("boss", "present", []),
        ("new", "absent", []),
        ("two", "present", ["blue"]),
        ("none", "present", []),
        ("all", "present", ["*"]),
        ("listed", "present", []),
        ("missing", "absent", []),
        ("before", "present", []),  # existed before the order
    ],
)
def test_only_users_of_the_vpod_are_deleted(tmp_path: Path, user: str, state: str, allocations: list[str]) -> None:
    revoke, report, remove = yaml.safe_load((ROLE / "revoke_user.yml").read_text())
    options = revoke["openipu.pod.vipu_user"]
    shown, *removed = results(
        tmp_path,
        [
            {"ansible.builtin.debug": {"msg": [options["state"], options["allocations"]]}, "vars": revoke["vars"]},
            report,
            {"ansible.builtin.debug": {"msg": "removed"}, "when": remove["when"], "vars": remove["vars"]},
        ],
        **{**yaml.safe_load((ROLE.parent / "vars/main.yml").read_text()), **VARIABLES},
        vpod_revoked=user,
        vpod_vipu={"users": USERS, "partitions": []},
        vpod_record={"vipu_users": {"removed": [] if user == "before" else [user]}},
        vipu_pod_users=POD_USERS,
    )
    assert shown["msg"] == [state, allocations]
    kept = (
        "V-IPU user 'before' was kept without allocations: project 'research' has no record that an order created the "
        "user. If it is not needed, delete it with: vipu-admin remove user before"
    )
    assert [result["msg"] for result in removed] == [kept] * (user == "before") + ["removed"] * (state == "absent")


@pytest.mark.parametrize(
    ("user", "recorded", "revoked"),
    [
        (None, [], []),
        (None, ["earlier", "present"], ["earlier", "present"]),
        ("present", ["earlier", "present"], ["present", "earlier"]),
        ("other", ["earlier"], ["other", "earlier"]),
    ],
)
def test_the_rights_of_all_users_of_the_vpod_are_revoked(
    tmp_path: Path, user: str | None, recorded: list[str], revoked: list[str]
) -> None:
    """The variable may have changed since the order. That of the command line must not replace those of the loop."""
    tasks = {task["name"]: task for task in yaml.safe_load((ROLE / "destroy.yml").read_text())[0]["block"]}
    include = tasks["Revoke the rights of the V-IPU users"]
    (tmp_path / "revoke_user.yml").write_text(
        yaml.safe_dump([{"ansible.builtin.debug": {"msg": "{{ vpod_revoked }}"}}])
    )
    include["ansible.builtin.include_tasks"]["file"] = str(tmp_path / "revoke_user.yml")
    assert "vpod_user }}" not in (ROLE / "revoke_user.yml").read_text()
    done = results(
        tmp_path,
        [include, {"ansible.builtin.debug": {"msg": "end"}}],
        *(["--extra-vars", json.dumps({"vpod_user": user})] if user else []),
        **{**yaml.safe_load((ROLE.parent / "vars/main.yml").read_text()), **VARIABLES},
        vpod_record={"vipu_users": {"removed": recorded}},
    )
    assert [result["msg"] for result in done if "results" not in result] == [*revoked, "end"]


@pytest.mark.parametrize(
    ("user", "of_others", "recorded"), [("missing", [], True), ("new", [], False), ("new", ["new"], True)]
)
def test_only_new_users_and_those_of_other_vpods_are_recorded(
    tmp_path: Path, user: str, of_others: list[str], recorded: bool
) -> None:
    main = yaml.safe_load((ROLE / "main.yml").read_text())[0]["block"]
    names = [task["name"] for task in main]
    record = main[names.index("Record the new V-IPU user")]
    before, after = (names.index(name) for name in ("Read the V-IPU user", "Assign the allocation to the V-IPU user"))
    assert before < names.index(record["name"]) < after
    done = results(
        tmp_path,
        [
            {"ansible.builtin.debug": {"msg": record["openipu.pod.openstack_pod_tenant"]}, "when": record["when"]},
            {"ansible.builtin.debug": {"msg": "assigned"}},
        ],
        **VARIABLES,
        vpod_user=user,
        vpod_vipu={"users": USERS},
        vpod_record={"vipu_users": {"removed": ["earlier"]}},
        vpod_recorded={"other_vipu_users": of_others},
    )
    expected = {"pod": "red", "project": "research", "vipu_users": ["earlier", user]}
    assert [result["msg"] for result in done] == [expected] * recorded + ["assigned"]


@pytest.mark.parametrize(
    ("user", "cause"),
    [
        ("root", "it is an administrator, who may use all IPUs"),
        ("later", "it is an administrator, who may use all IPUs"),
        ("Team A", f"its name must have {ID_RULE}"),
        ("new", None),
        ("missing", None),
    ],
)
def test_a_user_who_cannot_own_a_vpod_is_rejected(tmp_path: Path, user: str, cause: str | None) -> None:
    names = [task["name"] for task in yaml.safe_load((ROLE / "main.yml").read_text())[0]["block"]]
    assert names.index("Validate the V-IPU user") < names.index("Publish whether the vPOD is new")
    checks = yaml.safe_load((ROLE / "validate_user.yml").read_text())
    done = results(
        tmp_path,
        [{**check, "ignore_errors": True} for check in checks if "ansible.builtin.assert" in check],
        **{**yaml.safe_load((ROLE.parent / "vars/main.yml").read_text()), **VARIABLES},
        vpod_user=user,
        vpod_vipu={"users": USERS},
        vpod_record={"vipu_users": {"removed": []}},
        vipu_pod_users=POD_USERS,
    )
    expected = (
        f"Cannot assign vPOD 'red' to V-IPU user '{user}': {cause}. Nothing was changed. Set vpod_user to another "
        "user, or omit it."
    )
    assert [result["msg"] for result in done if result["failed"]] == ([expected] if cause else [])


@pytest.mark.parametrize(
    ("secure", "user", "warned"),
    [(True, None, True), (True, "alice", False), (False, None, False)],  # an open controller has no users
)
def test_a_vpod_without_a_user_of_a_secure_controller_is_reported(
    tmp_path: Path, secure: bool, user: str | None, warned: bool
) -> None:
    tasks = {task["name"]: task for task in yaml.safe_load((ROLE / "main.yml").read_text())[0]["block"]}
    done = results(
        tmp_path,
        [tasks["Warn about a vPOD without a V-IPU user"], {"ansible.builtin.debug": {"msg": "end"}}],
        **VARIABLES,
        vpod_controller_access={"secure": secure},
        vpod_allocation="red",
        vpod_users_folder="~/vipu-users",
        **({"vpod_user": user} if user else {}),
    )
    message = (
        "Warning: this run gave no V-IPU user access to vPOD 'red', and its controller is secure. Users without rights "
        "for allocation 'red' cannot use it. Set vpod_user, and run the playbook again. Then hand over the access key "
        "from ~/vipu-users to the tenant."
    )
    assert [result["msg"] for result in done] == [message] * warned + ["end"]


@pytest.mark.parametrize(
    ("user", "recorded", "former"),
    [
        ("missing", ["new"], "new"),
        ("two", ["new", "two"], "new"),
        ("new", ["new"], None),
        ("missing", ["none", "all", "gone"], None),  # without the allocation of the vPOD
        ("missing", ["two"], None),  # deleted with the vPOD of its other allocation
        ("missing", ["listed"], None),  # the destruction never deletes a user in pod.yml
        ("missing", [], None),
    ],
)
def test_another_user_replaces_none_that_an_order_created(
    tmp_path: Path, user: str, recorded: list[str], former: str | None
) -> None:
    """Both would have access until the vPOD is destroyed."""
    done = results(
        tmp_path,
        [
            {**check, "ignore_errors": True}
            for check in yaml.safe_load((ROLE / "validate_user.yml").read_text())
            if "ansible.builtin.assert" in check
        ],
        **{**yaml.safe_load((ROLE.parent / "vars/main.yml").read_text()), **VARIABLES},
        vpod_user=user,
        vpod_vipu={"users": USERS},
        vpod_record={"vipu_users": {"removed": recorded}},
        vipu_pod_users=POD_USERS,
    )
    expected = (
        f"Cannot assign vPOD 'red' to V-IPU user '{user}': an earlier order created user '{former}' for it. Nothing "
        f"was changed. Set vpod_user to '{former}'. To replace this user, delete it first: vipu-admin remove user "
        f"{former}"
    )
    assert [result["msg"] for result in done if result["failed"]] == ([expected] if former else [])
