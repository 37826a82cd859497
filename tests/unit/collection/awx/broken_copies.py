# SPDX-License-Identifier: GPL-3.0-or-later
"""Defects of the AWX content: a check, a change of a copy of the content, and a part of the finding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.unit.collection.awx import check_credentials as credentials
from tests.unit.collection.awx import check_notifications as notifications
from tests.unit.collection.awx import check_variables as variables
from tests.unit.collection.awx import checks
from tests.unit.collection.awx.checks import Check
from tests.unit.collection.awx.content import Content, Item, Unsafe, named


def item(content: Content, kind: str, name: str) -> Item:
    return named(content.kinds[kind])[name]


def question(content: Content, template: str, variable: str) -> Item:
    return variables.questions(item(content, "templates", template))[variable]


def node(content: Content, workflow: str, identifier: str) -> Item:
    nodes = item(content, "workflows", workflow)["workflow_nodes"]
    return next(each for each in nodes if each["identifier"] == identifier)


def message(content: Content, notification: str, event: str) -> Item:
    found: Item = item(content, "notifications", notification)["messages"][event]
    return found


def injectors(content: Content, name: str) -> dict[str, Any]:
    found: dict[str, Any] = item(content, "credential_types", name)["injectors"]
    return found


VIPU, EOS = "V-IPU controller", "Arista eAPI"
NEW = "Create a partition"
DRIFT, RESULTS = "POD drift (mail)", "POD results (webhook)"
BROKEN: list[tuple[Check, Callable[[Content], Any], str]] = [
    # Options of modules
    (checks.options_of_modules, lambda c: c.kinds.update(jobs=[]), "controller_jobs is unknown"),
    (checks.options_of_modules, lambda c: c.teams.append(c.teams[0]), "is used twice"),
    (checks.options_of_modules, lambda c: c.teams[0].update(owner="x"), "unknown option 'owner'"),
    (checks.options_of_modules, lambda c: c.teams[0].pop("organization"), "option 'organization' is missing"),
    (checks.options_of_modules, lambda c: c.templates[0].update(timeout="60"), "timeout is not of type int"),
    (checks.options_of_modules, lambda c: c.templates[0].update(job_type="scan"), "job_type is not one of"),
    (checks.options_of_modules, lambda c: c.templates[0].update(labels=[1]), "labels has an element"),
    # Names of objects
    *(
        (checks.references, lambda c, key=key: c.templates[0].update({key: "none"}), f"{key} 'none' does not exist")
        for key in ("project", "inventory", "execution_environment", "labels", "notification_templates_error")
    ),
    (checks.references, lambda c: c.templates[0].update(credentials=["none"]), "credentials 'none' does not exist"),
    (checks.references, lambda c: c.roles[0].update(teams=["none"]), "teams 'none' does not exist"),
    (checks.references, lambda c: c.schedules[0].update(unified_job_template="none"), "'none' does not exist"),
    (checks.references, lambda c: c.credentials[0].update(credential_type="none"), "credential type 'none' does not"),
    # Templates
    (checks.playbooks, lambda c: c.templates[0].update(playbook="playbooks/none.yml"), "'playbooks/none.yml' does not"),
    (
        checks.playbooks,
        lambda c: c.templates[0].update(playbook="ansible.cfg"),
        "playbook 'ansible.cfg' does not exist",
    ),
    (checks.playbooks, lambda c: c.templates[0].pop("timeout"), "timeout is not set"),
    (checks.playbooks, lambda c: item(c, "templates", NEW).update(survey_enabled=False), "does not agree with survey"),
    (checks.slices, lambda c: item(c, "templates", NEW).update(job_slice_count=2), "tasks with run_once"),
    # Tenants
    *(
        (checks.unattended_tenants, lambda c, key=key: item(c, "templates", "Order IPUs").update({key: True}), key)
        for key in ("ask_variables_on_launch", "ask_limit_on_launch", "ask_credential_on_launch")
    ),
    (checks.unattended_tenants, lambda c: c.roles[-1].update(role="admin"), "has the role admin"),
    # Workflows
    (checks.workflow_nodes, lambda c: node(c, "Drift", "check").update(credential=1), "unknown key 'credential'"),
    (checks.workflow_nodes, lambda c: node(c, "Drift", "check").update(identifier="report"), "is used twice"),
    (
        checks.workflow_nodes,
        lambda c: node(c, "Drift", "check")["unified_job_template"].update(name="none"),
        "job_template 'none' does not exist",
    ),
    (
        checks.workflow_nodes,
        lambda c: node(c, "Drift", "check")["unified_job_template"].pop("organization"),
        "does not name its organization",
    ),
    (
        checks.workflow_nodes,
        lambda c: node(c, "Order a vPOD", "approval")["unified_job_template"].pop("timeout"),
        "no name or timeout",
    ),
    (
        checks.workflow_nodes,
        lambda c: node(c, "Drift", "check")["related"].update(success_nodes=[{"identifier": "none"}]),
        "missing node 'none'",
    ),
    (
        checks.workflow_nodes,
        lambda c: node(c, "Drift", "check")["related"].update(ok_nodes=[]),
        "unknown key 'ok_nodes'",
    ),
    (
        checks.workflow_nodes,
        lambda c: node(c, "Drift", "report").update(related={"always_nodes": [{"identifier": "check"}]}),
        "part of a cycle",
    ),
    # Credential types
    (
        credentials.injectors,
        lambda c: injectors(c, VIPU)["env"].update(VIPU_CLI_API_HOST=Unsafe("{{ host }}")),
        "uses missing field 'host'",
    ),
    (credentials.injectors, lambda c: injectors(c, VIPU)["file"].pop("template.ca"), "uses missing file 'ca'"),
    (
        credentials.injectors,
        lambda c: injectors(c, VIPU)["env"].pop("VIPU_CLI_API_ACCESS_KEY"),
        "field 'access_key' is not used",
    ),
    (
        credentials.injectors,
        lambda c: injectors(c, VIPU)["env"].update(ANSIBLE_NET_USERNAME=Unsafe("{{ user }}")),
        "AWX rejects environment variables such as ANSIBLE_NET_USERNAME",
    ),
    (
        credentials.injectors,
        lambda c: injectors(c, EOS)["extra_vars"]["eos_connection"].update(user=Unsafe("{{ username }}")),
        "'user' is no option of eos_connection",
    ),
    (
        credentials.injectors,
        lambda c: injectors(c, EOS)["extra_vars"]["eos_connection"].update(username="{{ username }}"),
        "needs the tag !unsafe",
    ),
    (
        credentials.injectors,
        lambda c: item(c, "credential_types", VIPU)["inputs"]["required"].append("host"),
        "required field 'host' does not exist",
    ),
    (
        credentials.injectors,
        lambda c: item(c, "credential_types", VIPU)["inputs"]["fields"][0].update(hidden=True),
        "unknown key 'hidden'",
    ),
    (credentials.injectors, lambda c: injectors(c, VIPU)["file"].update(ca="x"), "malformed file 'ca'"),
    # Secrets
    (
        credentials.secrets,
        lambda c: c.credentials[0].update(inputs={"access_key": "x"}),
        "'access_key' is a secret",
    ),
    (credentials.secrets, lambda c: c.credentials[0].update(inputs={"host": "x"}), "field 'host' does not exist"),
    (credentials.secrets, lambda c: c.credentials[0].pop("update_secrets"), "update_secrets is not false"),
    (
        credentials.secrets,
        lambda c: item(c, "credentials", "POD hosts")["inputs"].update(password="x"),
        "'password' is a secret",
    ),
    (
        credentials.secrets,
        lambda c: item(c, "credential_types", VIPU)["inputs"]["fields"][1].pop("secret"),
        "field 'access_key' is not secret",
    ),
    # Use of credentials
    (
        credentials.use,
        lambda c: item(c, "templates", NEW)["credentials"].append("POD switches"),
        "variable 'eos_connection' is not used",
    ),
    (
        credentials.use,
        lambda c: item(c, "templates", "Cabling")["credentials"].append("POD V-IPU controller"),
        "reads the environment variable 'VIPU_CLI_CA_PATH'",
    ),
    (credentials.use, lambda c: item(c, "templates", "Monitoring").update(credentials=[]), "becomes root"),
    (
        credentials.use,
        lambda c: item(c, "templates", "IPU-Machine upgrade").update(credentials=["POD V-IPU controller"]),
        "'playbooks/ipum_upgrade.yml' connects to hosts",
    ),
    (credentials.use, lambda c: item(c, "templates", NEW).update(credentials=["POD hosts"]), "control node only"),
    (credentials.use, lambda c: item(c, "templates", NEW).update(credentials=["POD OpenStack"]), "is not used"),
    (
        credentials.use,
        lambda c: item(c, "templates", NEW).update(credentials=["POD PDUs", "POD PDUs"]),
        "two credentials of type 'PDU SNMPv3'",
    ),
    (
        credentials.use,
        lambda c: injectors(c, VIPU).update(extra_vars={"partition_summary": "x"}),
        "'playbooks/partition_create.yml' shows variable 'partition_summary'",
    ),
    # Variables
    (
        variables.supplied,
        lambda c: item(c, "templates", NEW)["survey_spec"]["spec"].pop(0),
        "variable 'partition_id' is not provided (partition_create.yml: Validate settings)",
    ),
    (
        variables.supplied,
        lambda c: question(c, NEW, "partition_id").update(required=False),
        "'partition_id' is required, but the question is not",
    ),
    (
        variables.supplied,
        lambda c: item(c, "templates", "Order IPUs")["extra_vars"].pop("order_user"),
        "variable 'order_user' is not provided",
    ),
    (
        variables.used,
        lambda c: question(c, NEW, "partition_id").update(variable="partition_name"),
        "variable 'partition_name' is not used",
    ),
    (variables.used, lambda c: c.templates[0].update(extra_vars={"pod_colour": 1}), "'pod_colour' is not used"),
    (
        variables.used,
        lambda c: item(c, "templates", NEW).update(extra_vars={"partition_id": "x"}),
        "'partition_id' is set and asked for",
    ),
    # Surveys
    (variables.surveys, lambda c: question(c, NEW, "partition_id").update(regexp="x"), "unknown key 'regexp'"),
    (
        variables.surveys,
        lambda c: question(c, NEW, "partition_id").pop("required"),
        "required is not of type bool",
    ),
    (variables.surveys, lambda c: question(c, NEW, "partition_id").update(type="ip"), "unknown type 'ip'"),
    (variables.surveys, lambda c: question(c, NEW, "partition_id").update(choices=["a"]), "choices do not agree"),
    (
        variables.surveys,
        lambda c: question(c, NEW, "partition_size").update(choices=[1]),
        "choices are not strings",
    ),
    (variables.surveys, lambda c: question(c, NEW, "partition_size").update(default="3"), "'3' is no choice"),
    (variables.surveys, lambda c: question(c, NEW, "partition_gcds").update(default=0), "'0' is out of limits"),
    (variables.surveys, lambda c: question(c, NEW, "partition_gcds").update(default="1"), "is not an integer"),
    (variables.surveys, lambda c: question(c, NEW, "partition_gcds").pop("max"), "min or max is missing"),
    (variables.surveys, lambda c: question(c, NEW, "partition_id").update(default=5), "'5' is not a string"),
    (
        variables.surveys,
        lambda c: item(c, "templates", NEW)["survey_spec"].pop("name"),
        "name, description and spec",
    ),
    # Options of modules and arguments of roles
    (
        variables.options,
        lambda c: question(c, "Create a user", "user_role").update(choices=["user", "root"]),
        "'root' is no choice (openipu.pod.vipu_user.role)",
    ),
    (
        variables.options,
        lambda c: question(c, "IPU-Machine upgrade", "virm_agent_upgrade_domain").update(choices=["rack"]),
        "'rack' is no choice (role openipu.pod.virm_agent)",
    ),
    (
        variables.options,
        lambda c: question(c, "Cluster tests", "pod_cluster_test").update(choices=["daily"]),
        "the playbook rejects 'daily'",
    ),
    (
        variables.options,
        lambda c: question(c, NEW, "partition_relocatable").update(choices=["maybe"]),
        "'maybe' is no bool",
    ),
    (
        variables.options,
        lambda c: question(c, NEW, "partition_size").update(choices=["all"]),
        "'all' is no integer",
    ),
    (
        variables.options,
        lambda c: question(c, NEW, "partition_gcds").update(type="text"),
        "of type text is no int",
    ),
    (
        variables.options,
        lambda c: item(c, "templates", "Drift check").update(
            survey_spec={"spec": [{"variable": "drift_found", "type": "multiplechoice", "choices": ["true", "false"]}]}
        ),
        "uses it as a condition without the filter bool",
    ),
    (variables.pod_limits, lambda c: question(c, NEW, "partition_size").update(choices=["12"]), "size is 12"),
    (
        variables.pod_limits,
        lambda c: question(c, "Create an allocation", "allocation_size").update(choices=["17"]),
        "size is 17",
    ),
    (
        checks.handled_failures,
        lambda c: node(c, "Rolling upgrade", "failure_report")["unified_job_template"].update(name="Rack report"),
        "node 'failure_report' follows a failure, but its job succeeds",
    ),
    # Prompts
    (
        variables.prompts,
        lambda c: node(c, "Drift", "check").update(extra_data={"drift_fail": "false"}),
        "AWX ignores 'drift_fail'",
    ),
    (
        variables.prompts,
        lambda c: node(c, "Rolling upgrade", "tests_after")["extra_data"].update(pod_cluster_test="no"),
        "'no' is no choice of 'pod_cluster_test'",
    ),
    (
        variables.prompts,
        lambda c: item(c, "workflows", "Order a vPOD")["survey_spec"]["spec"].pop(0),
        "'vpod_name' has no answer",
    ),
    (
        variables.prompts,
        lambda c: variables.questions(item(c, "workflows", "Order a vPOD"))["vpod_image"].update(variable="image"),
        "no node accepts 'image'",
    ),
    (
        variables.prompts,
        lambda c: variables.questions(item(c, "workflows", "Order a vPOD"))["vpod_ipus"].update(choices=["3"]),
        "'vpod_ipus' differs from the question",
    ),
    (
        variables.prompts,
        lambda c: item(c, "workflows", "Drift").update(notification_templates_approvals=["POD operations (mail)"]),
        "no approval",
    ),
    (variables.prompts, lambda c: c.schedules[0].update(extra_data={"x": 1}), "AWX ignores 'x'"),
    (
        variables.prompts,
        lambda c: c.schedules[0].update(unified_job_template=NEW),
        "'partition_id' has no answer",
    ),
    # Schedules
    (variables.schedules, lambda c: c.schedules[0].update(rrule="RRULE:FREQ=DAILY"), "DTSTART needs a time zone"),
    (
        variables.schedules,
        lambda c: c.schedules[0].update(rrule="DTSTART:20260101T020000Z RRULE:FREQ=DAILY"),
        "INTERVAL is missing",
    ),
    (
        variables.schedules,
        lambda c: c.schedules[0].update(rrule="DTSTART:20260101T020000Z RRULE:FREQ=OFTEN;INTERVAL=1"),
        "OFTEN",
    ),
    # Notifications
    (
        notifications.notifications,
        lambda c: message(c, DRIFT, "success").update(body=Unsafe("{{ job.artifacts.pod_drift }}")),
        "AWX rejects it: Field 'pod_drift' unavailable",
    ),
    (
        notifications.notifications,
        lambda c: message(c, DRIFT, "success").update(body="{{ url }}"),
        "body of success needs the tag !unsafe",
    ),
    (
        notifications.notifications,
        lambda c: message(c, DRIFT, "success").update(body=Unsafe("{{ job.artifacts.drift | default([]) }}")),
        "'Drift report': message for success of 'POD drift (mail)' shows 'drift', which no job sets",
    ),
    (
        notifications.notifications,
        lambda c: item(c, "workflows", "Drift").update(notification_templates_error=[DRIFT]),
        "'Drift': message for error of 'POD drift (mail)' shows 'pod_drift', which no job sets",
    ),
    (
        notifications.notifications,
        lambda c: message(c, RESULTS, "success").update(body=Unsafe("{{ job.name }}")),
        "body of success is no JSON object",
    ),
    (
        notifications.notifications,
        lambda c: message(c, RESULTS, "success").update(subject="Done"),
        "AWX rejects it: Message type 'subject' invalid",
    ),
    (
        notifications.notifications,
        lambda c: item(c, "templates", "Drift report").update(
            notification_templates_success=[], notification_templates_error=[]
        ),
        "notifications 'POD drift (mail)': nothing uses it",
    ),
]
