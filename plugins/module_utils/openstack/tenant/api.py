# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keystone API: tags of PODs, granted roles and created V-IPU users in a project.

The tag of a granted role has its user and the POD. So the writer revokes no role that a user had before, or that
another POD of the same user still needs.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field
from urllib.parse import quote

from ...reconcile import Action, ItemError, Object, Step, UserError
from ..common.client import Cloud
from ..common.steps import select
from ..common.tags import TAG
from ..common.writer import StepWriter
from .families import POD_TAG, ROLE, VIPU_USER, lent_role

_GRANT = "openipu.role="  # followed by role id, user id and POD, separated by colons
_USER = "openipu.vipu_user="  # followed by user and POD, separated by a colon


@dataclass
class TenantState:
    """Tags and granted roles of one project."""

    project: str  # id
    user: str  # id of the user of the task
    tags: list[str]
    role_ids: dict[str, str]  # by name
    roles: list[Object] = field(default_factory=list)

    def pod_tags(self, owner: str) -> list[Object]:
        """Return the tag of a POD, if the project has it."""
        return [{"name": owner}] if TAG + owner in self.tags else []

    def vipu_users(self, owner: str) -> list[Object]:
        """Return the V-IPU users that were created for a POD."""
        return [{"name": user} for user, pod in _users(self.tags) if pod == owner]

    def role(self, name: str, user: str) -> Object:
        """Return a role that is granted to a user. Raises UserError when no role has the name."""
        if name not in self.role_ids:
            known = ", ".join(sorted(self.role_ids))
            raise UserError("Cannot find role '%s'. Correct the name (existing roles: %s)." % (name, known))
        return lent_role(name, self.role_ids[name], user, user == self.user)


def fetch(cloud: Cloud, project: str, owner: str, roles: t.Iterable[str]) -> TenantState:
    """Read the project with this id, and whether the user has the roles with these names. Raises UserError."""
    user = cloud.identity()[0]
    ids = {raw["name"]: raw["id"] for raw in cloud.list("identity", "/roles", "roles")}
    state = TenantState(project, user, _tags(cloud, project), ids)
    names = {id: name for name, id in ids.items()}
    granted = _grants(state.tags)
    own = [(names[role], holder) for role, holder, pod in granted if pod == owner and role in names]
    for name, holder in dict.fromkeys([*own, *((name, user) for name in roles)]):
        item = state.role(name, holder)
        item["granted"] = _granted(cloud, project, item)
        item["tagged"] = (name, holder) in own
        # A role without a tag was not granted: the user keeps it.
        item["own"] = item["granted"] and item["role"] not in [
            role for role, user_id, _pod in granted if user_id == holder
        ]
        if item["own"]:
            item["tagged"] = True
        if item["granted"] or item["tagged"]:
            state.roles.append(item)
    return state


def others(cloud: Cloud, project: str, owner: str) -> Object:
    """Read the other PODs in the tags of the project with this id, and their V-IPU users. Raises UserError."""
    tags = _tags(cloud, project)
    return {
        "other_pods": sorted({tag.removeprefix(TAG) for tag in tags if tag.startswith(TAG)} - {owner}),
        "other_vipu_users": sorted({user for user, pod in _users(tags) if pod != owner}),
    }


def other_projects(cloud: Cloud, project: str | None, owner: str) -> list[str]:
    """Read the names of the projects with the tag of the POD, except the one with this id. Raises UserError."""
    found = cloud.list("identity", "/projects", "projects", tags=TAG + owner)
    return sorted(raw["name"] for raw in found if raw["id"] != project)


def _tags(cloud: Cloud, project: str) -> list[str]:
    return list(cloud.request("identity", "GET", "/projects/%s/tags" % project)["tags"])


def _grants(tags: list[str]) -> list[tuple[str, ...]]:
    """Return role id, user id and POD of each granted role."""
    return _parse(tags, _GRANT, 3)


def _users(tags: list[str]) -> list[tuple[str, ...]]:
    """Return created V-IPU users with their PODs."""
    return _parse(tags, _USER, 2)


def _parse(tags: list[str], prefix: str, count: int) -> list[tuple[str, ...]]:
    """Return the parts of the tags with a prefix. Tags without all parts are ignored: this collection adds none."""
    found = [tag.removeprefix(prefix).split(":", count - 1) for tag in tags if tag.startswith(prefix)]
    return [tuple(parts) for parts in found if len(parts) == count and all(parts)]


def _granted(cloud: Cloud, project: str, item: Object) -> bool:
    query = {"user.id": item["user"], "scope.project.id": project, "role.id": item["role"]}
    return bool(cloud.list("identity", "/role_assignments", "role_assignments", **query))


class TenantWriter(StepWriter):
    """Writer of POD tags, granted roles and created V-IPU users.

    The tag of a role is added first and removed last, so that none is left.
    """

    def __init__(self, cloud: Cloud, state: TenantState, owner: str) -> None:
        super().__init__(cloud, "identity")
        self._state = state
        self._owner = owner

    def __call__(self, steps: list[Step]) -> list[ItemError]:
        """Write the steps and return the errors."""
        self.for_each(select(steps, POD_TAG, (Action.CREATE,)), self._add_pod_tag)
        self.for_each(select(steps, VIPU_USER, (Action.CREATE,)), self._add_user)
        self.for_each(select(steps, ROLE, (Action.CREATE, Action.CHANGE)), self._grant_role)
        self.for_each(select(steps, ROLE, (Action.DELETE,)), self._revoke)
        self.for_each(select(steps, VIPU_USER, (Action.DELETE,)), self._remove_user)
        self.for_each(select(steps, POD_TAG, (Action.DELETE,)), self._remove_pod_tag)
        return self.errors

    def _add_pod_tag(self, step: Step) -> None:
        self._add(TAG + step.key)

    def _remove_pod_tag(self, step: Step) -> None:
        self.remove(self._tag(TAG + step.key))

    def _add_user(self, step: Step) -> None:
        self._add(self._user(step))

    def _remove_user(self, step: Step) -> None:
        self.remove(self._tag(self._user(step)))

    def _user(self, step: Step) -> str:
        return "%s%s:%s" % (_USER, step.key, self._owner)

    def _grant_role(self, step: Step) -> None:
        item = step.desired or {}
        self._add(self._prefix(item) + self._owner)
        self.write("PUT", self._grant(item))

    def _revoke(self, step: Step) -> None:
        """Revoke a role, then remove its tag: an interrupted run leaves the tag, and the next one continues.

        A role that another POD needs stays. The tags are read again afterwards, since another run may have added or
        removed its own tag at the same time.
        """
        item = step.before or {}
        tag = self._prefix(item) + self._owner
        last = not self._is_lent_to_others(item)
        if last:
            self.remove(self._grant(item))
        self.remove(self._tag(tag))
        if last and self._is_lent_to_others(item):  # added since the first read
            self.write("PUT", self._grant(item))
        elif not last and not self._is_lent_to_others(item):  # removed since, by a run that saw this tag
            self.remove(self._grant(item))

    def _is_lent_to_others(self, item: Object) -> bool:
        grants = _grants(_tags(self.cloud, self._state.project))
        return any((role, user) == (item["role"], item["user"]) and pod != self._owner for role, user, pod in grants)

    def _prefix(self, item: Object) -> str:
        return "%s%s:%s:" % (_GRANT, item["role"], item["user"])

    def _add(self, tag: str) -> None:
        """Add a tag that the project does not have: Keystone rejects duplicates."""
        if tag not in self._state.tags:
            self.write("PUT", self._tag(tag))

    def _tag(self, tag: str) -> str:
        return "/projects/%s/tags/%s" % (self._state.project, quote(tag, safe=""))

    def _grant(self, item: Object) -> str:
        return "/projects/%s/users/%s/roles/%s" % (self._state.project, item["user"], item["role"])
