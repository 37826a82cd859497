# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kinds of objects of AWX: their variables, modules, options and references. No I/O.

The names are those of the collection awx.awx 24.6.1. ``tests/awx/test_kinds.py`` compares them with its modules.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

_EVENTS = ("started", "success", "error")
_NOTIFICATIONS = {f"notification_templates_{event}": "controller_notifications" for event in _EVENTS}
_APPROVALS = {**_NOTIFICATIONS, "notification_templates_approvals": "controller_notifications"}
TEMPLATES = "templates"  # any kind that workflows and schedules start
STARTED_BY_NODES = {
    "job_template": "controller_templates",
    "workflow_job_template": "controller_workflows",
    "project": "controller_projects",
    "inventory_source": "controller_inventory_sources",
}


@dataclass(frozen=True)
class Kind:
    """One kind of objects: the variable with its entries, and the module that applies an entry."""

    variable: str
    module: str
    title: str
    endpoint: str
    options: str  # names of all options, separated by spaces
    required: tuple[str, ...] = ("name",)
    scope: tuple[str, ...] = ()  # options that together with the name identify an object
    references: t.Mapping[str, str] = field(default_factory=dict)  # variable of the kind that an option names

    @property
    def known(self) -> frozenset[str]:
        """Names of all options."""
        return frozenset(self.options.split()) | set(self.references) | {"state"} | set(self.required)


_ORGANIZATION = {"organization": "controller_organizations"}
_ENVIRONMENT = {"execution_environment": "controller_execution_environments"}
_PROMPTED = {
    **_ENVIRONMENT,
    "inventory": "controller_inventories",
    "credentials": "controller_credentials",
    "labels": "controller_labels",
    "instance_groups": "instance_groups",
}
_LABELS_AND_PROJECT = {"labels": "controller_labels", "project": "controller_projects"}
_ROLE_TARGETS = {
    "target_team": "controller_teams",
    "inventory": "controller_inventories",
    "job_template": "controller_templates",
    "workflow": "controller_workflows",
    "credential": "controller_credentials",
    "organization": "controller_organizations",
    "project": "controller_projects",
}
_ROLE_LISTS = {
    "target_teams": "controller_teams",
    "inventories": "controller_inventories",
    "job_templates": "controller_templates",
    "workflows": "controller_workflows",
    "credentials": "controller_credentials",
    "organizations": "controller_organizations",
    "projects": "controller_projects",
    "instance_groups": "instance_groups",
}
ROLE_TARGETS = {**_ROLE_TARGETS, **_ROLE_LISTS}
ROLE_TEAMS = ("team", "teams")

# In the order in which objects are created, so that each refers only to earlier ones.
KINDS: dict[str, Kind] = {
    kind.variable: kind
    for kind in (
        Kind(
            "controller_organizations",
            "organization",
            "organization",
            "organizations",
            "name new_name description custom_virtualenv max_hosts",
            references={
                "default_environment": "controller_execution_environments",
                "galaxy_credentials": "controller_credentials",
                "instance_groups": "instance_groups",
                **_APPROVALS,
            },
        ),
        Kind(
            "controller_teams",
            "team",
            "team",
            "teams",
            "name new_name description",
            required=("name", "organization"),
            scope=("organization",),
            references=_ORGANIZATION,
        ),
        Kind(
            "controller_labels",
            "label",
            "label",
            "labels",
            "name new_name",
            required=("name", "organization"),
            scope=("organization",),
            references=_ORGANIZATION,
        ),
        Kind(
            "controller_credential_types",
            "credential_type",
            "credential type",
            "credential_types",
            "name new_name description kind inputs injectors",
        ),
        Kind(
            "controller_credentials",
            "credential",
            "credential",
            "credentials",
            "name new_name copy_from description inputs update_secrets user",
            required=("name", "credential_type"),
            scope=("organization", "credential_type"),
            references={
                **_ORGANIZATION,
                "credential_type": "controller_credential_types",
                "team": "controller_teams",
            },
        ),
        Kind(
            "controller_execution_environments",
            "execution_environment",
            "execution environment",
            "execution_environments",
            "name new_name description image pull",
            required=("name", "image"),
            references={**_ORGANIZATION, "credential": "controller_credentials"},
        ),
        Kind(
            "controller_notifications",
            "notification_template",
            "notification template",
            "notification_templates",
            "name new_name copy_from description notification_type notification_configuration messages",
            required=("name", "organization", "notification_type", "notification_configuration"),
            scope=("organization",),
            references=_ORGANIZATION,
        ),
        Kind(
            "controller_projects",
            "project",
            "project",
            "projects",
            "name new_name copy_from description scm_type scm_url local_path scm_branch scm_refspec scm_clean "
            "scm_delete_on_update scm_track_submodules scm_update_on_launch scm_update_cache_timeout allow_override "
            "timeout custom_virtualenv wait update_project interval",
            scope=("organization",),
            references={
                **_ORGANIZATION,
                **_NOTIFICATIONS,
                "credential": "controller_credentials",
                "signature_validation_credential": "controller_credentials",
                "default_environment": "controller_execution_environments",
            },
        ),
        Kind(
            "controller_inventories",
            "inventory",
            "inventory",
            "inventories",
            "name new_name copy_from description variables kind host_filter prevent_instance_group_fallback",
            required=("name", "organization"),
            scope=("organization",),
            references={
                **_ORGANIZATION,
                "instance_groups": "instance_groups",
                "input_inventories": "controller_inventories",
            },
        ),
        Kind(
            "controller_inventory_sources",
            "inventory_source",
            "inventory source",
            "inventory_sources",
            "name new_name description source source_path source_vars enabled_var enabled_value host_filter limit "
            "custom_virtualenv overwrite overwrite_vars timeout verbosity update_on_launch update_cache_timeout "
            "scm_branch",
            required=("name", "inventory", "source"),
            scope=("inventory",),
            references={
                **_ORGANIZATION,
                **_ENVIRONMENT,
                **_NOTIFICATIONS,
                "inventory": "controller_inventories",
                "credential": "controller_credentials",
                "source_project": "controller_projects",
            },
        ),
        Kind(
            "controller_templates",
            "job_template",
            "job template",
            "job_templates",
            "name new_name copy_from description job_type playbook custom_virtualenv forks limit verbosity extra_vars "
            "job_tags force_handlers skip_tags start_at_task timeout use_fact_cache host_config_key "
            "ask_diff_mode_on_launch ask_variables_on_launch ask_limit_on_launch ask_tags_on_launch "
            "ask_skip_tags_on_launch ask_job_type_on_launch ask_verbosity_on_launch ask_inventory_on_launch "
            "ask_credential_on_launch ask_execution_environment_on_launch ask_forks_on_launch "
            "ask_instance_groups_on_launch ask_job_slice_count_on_launch ask_labels_on_launch ask_timeout_on_launch "
            "survey_enabled survey_spec become_enabled diff_mode allow_simultaneous scm_branch "
            "ask_scm_branch_on_launch job_slice_count webhook_service prevent_instance_group_fallback",
            required=("name", "project", "playbook"),
            scope=("organization",),
            references={
                **_ORGANIZATION,
                **_PROMPTED,
                **_LABELS_AND_PROJECT,
                **_NOTIFICATIONS,
                **dict.fromkeys(("credential", "vault_credential", "webhook_credential"), "controller_credentials"),
            },
        ),
        Kind(
            "controller_workflows",
            "workflow_job_template",
            "workflow template",
            "workflow_job_templates",
            "name new_name copy_from description extra_vars job_tags skip_tags survey_enabled survey_spec "
            "allow_simultaneous limit scm_branch ask_variables_on_launch ask_inventory_on_launch "
            "ask_scm_branch_on_launch ask_limit_on_launch ask_labels_on_launch ask_tags_on_launch "
            "ask_skip_tags_on_launch webhook_service workflow_nodes destroy_current_nodes",
            scope=("organization",),
            references={
                **_ORGANIZATION,
                **_APPROVALS,
                "inventory": "controller_inventories",
                "labels": "controller_labels",
                "webhook_credential": "controller_credentials",
            },
        ),
        Kind(
            "controller_schedules",
            "schedule",
            "schedule",
            "schedules",
            "name new_name description rrule extra_data forks job_slice_count timeout scm_branch job_type job_tags "
            "skip_tags limit diff_mode verbosity enabled",
            required=("name", "rrule", "unified_job_template"),
            scope=("unified_job_template",),
            references={**_ORGANIZATION, **_PROMPTED, "unified_job_template": TEMPLATES},
        ),
        Kind(
            "controller_roles",
            "role",
            "role",
            "roles",
            "role user users",
            required=("role",),
            references={
                **dict.fromkeys(ROLE_TEAMS, "controller_teams"),
                **ROLE_TARGETS,
                "lookup_organization": "controller_organizations",
            },
        ),
    )
}

# What each AWX 24.6.1 contains from the start.
BUILT_IN: dict[str, frozenset[str]] = {
    "controller_credential_types": frozenset(
        (
            *("Machine", "Source Control", "Vault", "Network", "Container Registry", "GPG Public Key"),
            *("Amazon Web Services", "OpenStack", "VMware vCenter", "Red Hat Satellite 6", "Google Compute Engine"),
            *("Microsoft Azure Resource Manager", "Red Hat Virtualization", "Insights"),
            *("GitHub Personal Access Token", "GitLab Personal Access Token"),
            *("Red Hat Ansible Automation Platform", "OpenShift or Kubernetes API Bearer Token"),
            *("Ansible Galaxy/Automation Hub API Token", "Terraform backend configuration"),
        )
    ),
    "controller_execution_environments": frozenset(("AWX EE (latest)", "Control Plane Execution Environment")),
    "instance_groups": frozenset(("controlplane", "default")),
}


def describe(kind: Kind, entry: t.Mapping[str, t.Any]) -> str:
    """Return kind and name of an entry, as messages show it."""
    if kind.variable != "controller_roles":
        return "{} '{}'".format(kind.title, entry.get("name", "without name"))
    members = [name for option in (*ROLE_TEAMS, "user", "users") for name in names(entry.get(option))]
    targets = [name for option in ROLE_TARGETS for name in names(entry.get(option))]
    shown = ", ".join(targets[:3]) + (f" and {len(targets) - 3} more" if len(targets) > 3 else "")
    return "role '{}' of {} on {}".format(
        entry.get("role", "without name"),
        ", ".join(members) or "no member",
        shown or "no object",
    )


def names(value: t.Any) -> list[str]:
    """Return the names in the value of an option, which is a name or a list of names."""
    if value in (None, ""):
        return []
    return [str(name) for name in value] if isinstance(value, list) else [str(value)]


def identity(kind: Kind, entry: t.Mapping[str, t.Any]) -> tuple[str, ...]:
    """Return what identifies an entry among those of its kind."""
    if kind.variable == "controller_roles":
        return (describe(kind, entry), *(name for option in ROLE_TARGETS for name in names(entry.get(option))))
    return tuple(str(entry.get(option) or "") for option in ("name", *kind.scope))
