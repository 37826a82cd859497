# SPDX-License-Identifier: GPL-3.0-or-later
"""Resources of the API: fields, relations, roles and unique names.

Source: the models, serializers and URLs of AWX 24.6.1. The role awx_content uses all of them.
"""

from __future__ import annotations

from tests.awx.standin.fields import Field, boolean, choice, data, integer, reference, text, variables
from tests.awx.standin.resource import Resource

VERBOSITIES = (0, 1, 2, 3, 4, 5)
NAME = text(required=True)
_JOB = {**{name: text() for name in ("name", "created", "status")}, "extra_vars": variables()}
_WORKFLOW_JOB = {**_JOB, "workflow_job_template": reference("workflow_job_templates", deletes=True)}
NOTIFICATIONS = {
    f"notification_templates_{event}": "notification_templates" for event in ("started", "success", "error")
}
APPROVALS = {**NOTIFICATIONS, "notification_templates_approvals": "notification_templates"}


def _prompts() -> dict[str, Field]:
    """Return the fields of nodes and schedules that override those of the template."""
    none = {"default": None, "null": True}
    return {
        "extra_data": data(),
        "inventory": reference("inventories"),
        "scm_branch": text(**none),
        "job_type": choice("run", "check", **none),
        "job_tags": text(**none),
        "skip_tags": text(**none),
        "limit": text(**none),
        "diff_mode": boolean(**none),
        "verbosity": choice(*VERBOSITIES, **none),
        "execution_environment": reference("execution_environments"),
        "forks": integer(**none),
        "job_slice_count": integer(**none),
        "timeout": integer(**none),
    }


def _asks(*names: str) -> dict[str, Field]:
    return {f"ask_{name}_on_launch": boolean() for name in names}


_PROMPTED_LISTS = {"credentials": "credentials", "labels": "labels", "instance_groups": "instance_groups"}
_ORGANIZATION = {"organization": reference("organizations", deletes=True)}
_OF_TEMPLATES = {"schedules": ("schedules", "unified_job_template")}

RESOURCES = {
    resource.name: resource
    for resource in (
        Resource(
            "organizations",
            "organization",
            {
                "name": NAME,
                "description": text(),
                "max_hosts": integer(),
                "default_environment": reference("execution_environments"),
            },
            roles=(
                *("admin", "execute", "project_admin", "inventory_admin", "credential_admin", "workflow_admin"),
                *("notification_admin", "job_template_admin", "execution_environment_admin", "auditor", "member"),
                *("read", "approval"),
            ),
            lists={**APPROVALS, "instance_groups": "instance_groups", "galaxy_credentials": "credentials"},
            children={
                name: (name, "organization")
                for name in (
                    "teams",
                    "projects",
                    "inventories",
                    "credentials",
                    "notification_templates",
                    "job_templates",
                )
            },
            label="Organization",
        ),
        Resource(
            "users",
            "user",
            {
                "username": NAME,
                **{name: text() for name in ("first_name", "last_name", "email")},
                "is_superuser": boolean(),
                "is_system_auditor": boolean(),
                "password": text(),
            },
            unique=("username",),
            named_url=("username",),
            label="User",
        ),
        Resource(
            "teams",
            "team",
            {
                "name": NAME,
                "description": text(),
                "organization": reference("organizations", required=True, deletes=True),
            },
            unique=("organization", "name"),
            roles=("admin", "member", "read"),
            named_url=("name", "organization"),
            label="Team",
        ),
        Resource(
            "labels",
            "label",
            {"name": NAME, "organization": reference("organizations", required=True, deletes=True)},
            unique=("name", "organization"),
            named_url=("name", "organization"),
            label="Label",
            deletable=False,
        ),
        Resource(
            "credential_types",
            "credential_type",
            {
                "name": NAME,
                "description": text(),
                # POST and PATCH accept only "cloud" and "net".
                "kind": choice(
                    *("ssh", "vault", "net", "scm", "cloud", "registry", "token", "insights", "external", "kubernetes"),
                    *("galaxy", "cryptography"),
                    required=True,
                ),
                "namespace": text(None, read_only=True),
                "managed": boolean(read_only=True),
                "inputs": data(),
                "injectors": data(),
            },
            unique=("name", "kind"),
            named_url=("name", "kind"),
            label="Credential type",
        ),
        Resource(
            "credentials",
            "credential",
            {
                "name": NAME,
                "description": text(),
                **_ORGANIZATION,
                "credential_type": reference("credential_types", required=True),
                "inputs": data(),
                "managed": boolean(read_only=True),
                "user": reference("users", create_only=True),
                "team": reference("teams", create_only=True),
            },
            unique=("organization", "name", "credential_type"),
            roles=("admin", "use", "read"),
            named_url=("name", "credential_type", "organization"),
            label="Credential",
        ),
        Resource(
            "execution_environments",
            "execution_environment",
            {
                "name": NAME,
                "description": text(),
                **_ORGANIZATION,
                "image": text(required=True),
                "credential": reference("credentials"),
                "pull": choice("always", "missing", "never"),
                "managed": boolean(read_only=True),
            },
            label="Execution environment",
        ),
        Resource(
            "projects",
            "project",
            {
                "name": NAME,
                "description": text(),
                "organization": reference("organizations"),
                "local_path": text(),
                "scm_type": choice("git", "svn", "insights", "archive"),
                **{name: text() for name in ("scm_url", "scm_branch", "scm_refspec")},
                **{name: boolean() for name in ("scm_clean", "scm_track_submodules", "scm_delete_on_update")},
                **{name: boolean() for name in ("scm_update_on_launch", "allow_override")},
                "scm_update_cache_timeout": integer(),
                "timeout": integer(),
                "credential": reference("credentials"),
                "default_environment": reference("execution_environments"),
                "signature_validation_credential": reference("credentials"),
                "scm_revision": text(read_only=True),
                "status": text("pending", read_only=True),
            },
            unique=("organization", "name"),
            roles=("admin", "use", "update", "read"),
            lists=dict(NOTIFICATIONS),
            children=_OF_TEMPLATES,
            named_url=("name", "organization"),
            label="Project",
        ),
        Resource(
            "inventories",
            "inventory",
            {
                "name": NAME,
                "description": text(),
                "organization": reference("organizations", required=True, deletes=True),
                "kind": choice("smart", "constructed"),
                "host_filter": text(None, null=True),
                "variables": variables(),
                "prevent_instance_group_fallback": boolean(),
            },
            unique=("name", "organization"),
            roles=("admin", "adhoc", "update", "use", "read"),
            lists={"instance_groups": "instance_groups", "labels": "labels"},
            children={"inventory_sources": ("inventory_sources", "inventory")},
            named_url=("name", "organization"),
            label="Inventory",
            delete_status=202,
        ),
        Resource(
            "inventory_sources",
            "inventory_source",
            {
                "name": NAME,
                "description": text(),
                "inventory": reference("inventories", required=True, deletes=True, create_only=True),
                "source": choice(
                    *("scm", "ec2", "gce", "azure_rm", "vmware", "satellite6", "openstack", "rhv", "controller"),
                    *("insights", "terraform", "openshift_virtualization"),
                    required=True,
                ),
                "source_path": text(),
                "source_vars": variables(),
                "source_project": reference("projects", deletes=True),
                **{name: text() for name in ("scm_branch", "enabled_var", "enabled_value", "host_filter", "limit")},
                **{name: boolean() for name in ("overwrite", "overwrite_vars", "update_on_launch")},
                "credential": reference("credentials"),
                "execution_environment": reference("execution_environments"),
                "update_cache_timeout": integer(),
                "timeout": integer(),
                "verbosity": choice(0, 1, 2, default=1),
            },
            unique=("name", "inventory"),
            lists=dict(NOTIFICATIONS),
            children=_OF_TEMPLATES,
            named_url=("name", "inventory"),
            label="InventorySource",
        ),
        Resource(
            "job_templates",
            "job_template",
            {
                "name": NAME,
                "description": text(),
                "job_type": choice("run", "check", default="run"),
                "inventory": reference("inventories"),
                "project": reference("projects"),
                **{name: text() for name in ("playbook", "scm_branch", "limit", "job_tags", "skip_tags")},
                **{name: text() for name in ("start_at_task", "host_config_key")},
                "forks": integer(),
                "verbosity": choice(*VERBOSITIES, default=0),
                "extra_vars": variables(),
                **{
                    name: boolean() for name in ("force_handlers", "use_fact_cache", "survey_enabled", "become_enabled")
                },
                **{name: boolean() for name in ("diff_mode", "allow_simultaneous", "prevent_instance_group_fallback")},
                "timeout": integer(),
                "job_slice_count": integer(1),
                "organization": reference("organizations", read_only=True),
                "execution_environment": reference("execution_environments"),
                "webhook_service": choice("github", "gitlab", "bitbucket_dc"),
                "webhook_credential": reference("credentials"),
                **_asks(
                    *("scm_branch", "diff_mode", "variables", "limit", "tags", "skip_tags", "job_type", "verbosity"),
                    *("inventory", "credential", "execution_environment", "labels", "forks", "job_slice_count"),
                    *("timeout", "instance_groups"),
                ),
            },
            unique=("name", "organization"),
            roles=("admin", "execute", "read"),
            lists={**_PROMPTED_LISTS, **NOTIFICATIONS},
            children=_OF_TEMPLATES,
            named_url=("name", "organization"),
            label="JobTemplate",
        ),
        Resource(
            "workflow_job_templates",
            "workflow_job_template",
            {
                "name": NAME,
                "description": text(),
                "organization": reference("organizations"),
                "extra_vars": variables(),
                **{name: boolean() for name in ("survey_enabled", "allow_simultaneous")},
                "inventory": reference("inventories"),
                **{name: text(None, null=True) for name in ("limit", "scm_branch", "job_tags", "skip_tags")},
                "webhook_service": choice("github", "gitlab", "bitbucket_dc"),
                "webhook_credential": reference("credentials"),
                **_asks("variables", "inventory", "scm_branch", "limit", "labels", "tags", "skip_tags"),
            },
            unique=("name", "organization"),
            roles=("admin", "execute", "read", "approval"),
            lists={"labels": "labels", **APPROVALS},
            children={**_OF_TEMPLATES, "workflow_nodes": ("workflow_job_template_nodes", "workflow_job_template")},
            named_url=("name", "organization"),
            label="WorkflowJobTemplate",
        ),
        Resource(
            "workflow_job_template_nodes",
            "workflow_job_template_node",
            {
                **_prompts(),
                "workflow_job_template": reference(
                    "workflow_job_templates", required=True, deletes=True, create_only=True
                ),
                "unified_job_template": reference("unified_job_templates"),
                "all_parents_must_converge": boolean(),
                "identifier": text(),
            },
            unique=("identifier", "workflow_job_template"),
            lists={
                **{f"{outcome}_nodes": "workflow_job_template_nodes" for outcome in ("success", "failure", "always")},
                **_PROMPTED_LISTS,
            },
            named_url=("identifier", "workflow_job_template"),
            label="Workflow job template node",
        ),
        Resource(
            "workflow_approval_templates",
            "workflow_approval_template",
            {"name": NAME, "description": text(), "timeout": integer()},
            unique=(),
        ),
        Resource(
            "schedules",
            "schedule",
            {
                **_prompts(),
                "name": NAME,
                "description": text(),
                "rrule": text(required=True),
                "unified_job_template": reference("unified_job_templates", required=True, deletes=True),
                "enabled": boolean(True),
            },
            unique=("unified_job_template", "name"),
            lists=dict(_PROMPTED_LISTS),
            named_url=("name", "unified_job_template"),
            label="Schedule",
        ),
        Resource(
            "notification_templates",
            "notification_template",
            {
                "name": NAME,
                "description": text(),
                "organization": reference("organizations", required=True, deletes=True),
                "notification_type": choice(
                    *("awssns", "email", "grafana", "irc", "mattermost", "pagerduty", "rocketchat", "slack"),
                    *("twilio", "webhook"),
                    required=True,
                ),
                "notification_configuration": data(),
                "messages": data(
                    {"started": None, "success": None, "error": None, "workflow_approval": None}, null=True
                ),
            },
            unique=("organization", "name"),
            named_url=("name", "organization"),
            label="Notification template",
        ),
        Resource("applications", "o_auth2_application", {"name": NAME, **_ORGANIZATION}),
        Resource("instance_groups", "instance_group", {"name": NAME}, roles=("admin", "use", "read")),
        Resource(
            "project_updates",
            "project_update",
            {
                "project": reference("projects", deletes=True),
                "status": text("pending"),
                "scm_revision": text(),
                "failed": boolean(),
                "finished": text(None, null=True),
                "event_processing_finished": boolean(),
            },
            unique=(),
            named_url=("project",),
        ),
        Resource("workflow_jobs", "workflow_job", _WORKFLOW_JOB, unique=()),
        Resource("jobs", "job", {**_JOB, "job_template": reference("job_templates", deletes=True)}, unique=()),
        Resource(
            "tokens",
            "o_auth2_access_token",
            {"description": text(), "application": text(None, null=True), "scope": choice("read", "write")},
            unique=(),
            named_url=("description",),
        ),
    )
}
UNIFIED = ("projects", "inventory_sources", "job_templates", "workflow_job_templates", "workflow_approval_templates")
