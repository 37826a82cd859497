# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of inventory sources and job templates in the execution environment, with a twin."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tools.ee.jobs import Controller, Launch
from tools.ee.survey import LaunchError

from .content import BRING_UP, CLUSTER_TESTS, twin_credentials

SOURCE = "inventory/twin/pod.yml"


@pytest.fixture(scope="module")
def inventory(controller: Controller) -> dict[str, Any]:
    return controller.update_inventory(SOURCE)


def plain(node: Any) -> Any:
    """Return data without the marks of strings that Ansible does not render."""
    if isinstance(node, dict):
        return node["__ansible_unsafe"] if "__ansible_unsafe" in node else {k: plain(v) for k, v in node.items()}
    return [plain(each) for each in node] if isinstance(node, list) else node


def texts(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for each in node.values():
            yield from texts(each)
    elif isinstance(node, list):
        for each in node:
            yield from texts(each)
    elif isinstance(node, str):
        yield node


def test_an_inventory_source_has_no_paths_outside_of_the_project(inventory):
    assert len(inventory["machines"]["hosts"]) == 16
    assert plain(inventory["all"]["vars"]["pod_file"]) == f"/runner/project/{SOURCE}"
    paths = [text for text in texts(inventory) if text.startswith("/")]
    assert [path for path in paths if not path.startswith("/runner/project/")] == []


def test_an_inventory_source_with_a_cache_gives_the_same_hosts(controller, inventory):
    cached = controller.update_inventory(
        SOURCE,
        ANSIBLE_INVENTORY_CACHE="true",
        ANSIBLE_INVENTORY_CACHE_PLUGIN="jsonfile",
        ANSIBLE_INVENTORY_CACHE_CONNECTION="/runner/artifacts/cache",
    )
    assert cached == inventory


def test_an_inventory_source_can_have_several_pods(controller, project):
    folder = project / "inventory" / "pods"
    for name in ("north", "south"):
        pod = folder / name / "pod.yml"
        shutil.copytree(project / "inventory" / "twin", pod.parent)
        shutil.rmtree(pod.parent / "group_vars")
        pod.write_text(pod.read_text().replace("name: twin", f"name: {name}\nshared_inventory: true", 1))
    found = controller.update_inventory("inventory/pods")
    assert len(found["machines"]["hosts"]) == 32
    assert len(found["pod_north"]["vars"]["pod_group"]) > 0
    assert {"north-ag01", "south-ag01"} <= set(found["machines"]["hosts"])
    shutil.rmtree(folder)


def test_a_job_brings_up_the_pod_and_a_second_one_changes_nothing(controller, inventory, twin):
    credentials = twin_credentials(twin.state)
    first = controller.run_template(BRING_UP, inventory, credentials)
    assert first.status == "successful", first.stdout
    assert first.changed > 0
    assert {each["id"]: each["state"] for each in twin.status()["partitions"]} == dict.fromkeys(
        ("language", "notebook", "vision"), "ACTIVE"
    )
    without_report = {**BRING_UP, "skip_tags": "report"}
    check = controller.run_template(without_report, inventory, credentials, Launch(job_type="check"))
    assert (check.status, check.changed) == ("successful", 0), check.stdout
    second = controller.run_template(without_report, inventory, credentials)
    assert (second.status, second.changed) == ("successful", 0), second.stdout
    # The report is a file on the control node, and each job has a new container.
    third = controller.run_template(BRING_UP, inventory, credentials)
    assert (third.status, third.changed_tasks) == ("successful", {"Write the rack report"}), third.stdout
    secrets = [
        value for each in credentials for name, value in each["inputs"].items() if name.endswith(("key", "word"))
    ]
    for job in (first, check, second, third):
        returned = "".join(path.read_text(errors="replace") for path in job.folder.rglob("*") if path.is_file())
        assert [secret for secret in secrets if secret in returned] == []


def test_answers_of_a_survey_reach_the_playbook(controller, inventory, twin):
    launch = Launch(answers={"pod_cluster_test": "never", "unknown": 1})
    job = controller.run_template(CLUSTER_TESTS, inventory, launch=launch)
    assert job.status == "successful", job.stdout
    assert job.ignored == {"unknown": 1}


def test_a_failed_job_is_reported(controller, inventory):
    template = {**BRING_UP, "job_tags": "preflight", "credentials": []}
    job = controller.run_template(template, {**inventory, "controllers": {"hosts": []}})
    assert job.status == "failed"
    assert "Cannot continue: the inventory has no POD with a controller." in " ".join(job.stdout.split())


def test_a_template_without_its_playbook_or_credential_is_rejected(controller, inventory):
    with pytest.raises(LaunchError, match="Playbook not found for project"):
        controller.run_template({**BRING_UP, "playbook": "playbooks/none.yml"}, inventory)
    with pytest.raises(LaunchError, match="its credentials are"):
        controller.run_template(BRING_UP, inventory)
    with pytest.raises(LaunchError, match="does not ask for limit"):
        controller.run_template(CLUSTER_TESTS, inventory, launch=Launch(limit="machines"))


def test_private_files_stay_private(controller, project, inventory, tmp_path):
    """Secrets reach the container as files of mode 0600, and answers are never rendered."""
    (project / "playbooks" / "probe.yml").write_text(
        json.dumps(
            [
                {
                    "hosts": "localhost",
                    "gather_facts": False,
                    "tasks": [
                        {
                            "ansible.builtin.set_stats": {
                                "data": {
                                    "mode": "{{ lookup('ansible.builtin.pipe', 'stat -c %a $KUBECONFIG') }}",
                                    "content": "{{ lookup('ansible.builtin.file', lookup('env', 'KUBECONFIG')) }}",
                                    "answer": "{{ answer }}",
                                    "fixed": "{{ fixed }}",
                                }
                            }
                        },
                    ],
                }
            ]
        )
    )
    question = {"question_name": "Answer", "variable": "answer", "type": "text", "required": True}
    template = {
        "name": "Probe",
        "playbook": "playbooks/probe.yml",
        "credentials": ["Cluster"],
        "extra_vars": {"fixed": "{{ 20 + 1 }}"},
        "survey_enabled": True,
        "survey_spec": {"name": "", "description": "", "spec": [question]},
    }
    cluster = {
        "name": "Cluster",
        "credential_type": "Kubernetes kubeconfig",
        "inputs": {"kubeconfig": "apiVersion: v1"},
    }
    launch = Launch(answers={"answer": "{{ 1 + 1 }}"})
    job = controller.run_template(template, inventory, [cluster], launch)
    assert job.status == "successful", job.stdout
    assert job.artifacts["mode"] == "600"
    assert job.artifacts["content"] == "apiVersion: v1"
    assert job.artifacts["answer"] == "{{ 1 + 1 }}"
    assert str(job.artifacts["fixed"]) == "21"
