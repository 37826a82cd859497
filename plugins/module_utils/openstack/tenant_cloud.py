# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a project has of a POD, and roles there that are lent to who asks: both noted as tags of the project.

A note of a role names whom it was given to and what for, so that nobody takes back a role that a user had before, or
that another order of the same user still needs.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field
from urllib.parse import quote

from ..reconcile import Action, Family, Field, ItemError, Object, SentenceError, Step
from .attempts import Attempts, of
from .client import Cloud
from .resources import TAG

NOTE = Family("note", (), key="name")
ROLE = Family("role", (Field("noted"), Field("granted")))

_LENT = "openipu.role="  # and the ids of role and user, and what for, with colons between them


@dataclass
class There:
    """What there is of one project."""

    project: str  # its id
    user: str  # who asks
    tags: list[str]
    role_ids: dict[str, str]  # by name
    roles: list[Object] = field(default_factory=list)

    def others(self, owner: str) -> list[str]:
        """For what else the project is noted."""
        return sorted({tag.removeprefix(TAG) for tag in self.tags if tag.startswith(TAG)} - {owner})

    def role(self, name: str, user: str) -> Object:
        """A role that is lent to a user, as it should be; raises SentenceError."""
        if name not in self.role_ids:
            known = ", ".join(sorted(self.role_ids))
            raise SentenceError("There is no role '%s': correct the name (known are %s)." % (name, known))
        key = name if user == self.user else "%s of user %s" % (name, user)
        return {"id": key, "role": self.role_ids[name], "user": user, "noted": True, "granted": True}


def look(cloud: Cloud, project: str, owner: str, asked: t.Iterable[str]) -> There:
    """What there is of the project with this id. ``asked`` are names of roles. Raises SentenceError."""
    user = cloud.who()[0]
    roles = {raw["name"]: raw["id"] for raw in cloud.list("identity", "/roles", "roles")}
    there = There(project, user, _tags(cloud, project), roles)
    names = {id: name for name, id in roles.items()}
    lent = [_lent(tag) for tag in there.tags if tag.startswith(_LENT)]
    mine = [(names[role], holder) for role, holder, reason in lent if reason == owner and role in names]
    for name, holder in dict.fromkeys([*mine, *((name, user) for name in asked)]):
        item = there.role(name, holder)
        item["granted"] = _granted(cloud, project, item)
        item["noted"] = (name, holder) in mine
        # A role that nobody noted is the user's own: there is nothing to do, and nothing to take back.
        item["own"] = item["granted"] and item["role"] not in [role for role, by, _for in lent if by == holder]
        if item["own"]:
            item["noted"] = True
        if item["granted"] or item["noted"]:
            there.roles.append(item)
    return there


def _tags(cloud: Cloud, project: str) -> list[str]:
    return list(cloud.request("identity", "GET", "/projects/%s/tags" % project)["tags"])


def _lent(tag: str) -> tuple[str, str, str]:
    """The ids of role and user, and what for."""
    role, user, reason = tag.removeprefix(_LENT).split(":", 2)
    return role, user, reason


def _granted(cloud: Cloud, project: str, item: Object) -> bool:
    query = {"user.id": item["user"], "scope.project.id": project, "role.id": item["role"]}
    return bool(cloud.list("identity", "/role_assignments", "role_assignments", **query))


class TenantWriter(Attempts):
    """Carries steps out. A role is noted before it is given, so that none is given that nobody takes back."""

    def __init__(self, cloud: Cloud, there: There, owner: str) -> None:
        super().__init__(cloud, "identity")
        self._there = there
        self._owner = owner

    def __call__(self, steps: list[Step]) -> list[ItemError]:
        """Write; the errors are those of steps that were not carried out."""
        self.each(of(steps, NOTE, (Action.CREATE,)), self._note)
        self.each(of(steps, ROLE, (Action.CREATE, Action.CHANGE)), self._lend)
        self.each(of(steps, ROLE, (Action.DELETE,)), self._take_back)
        self.each(of(steps, NOTE, (Action.DELETE,)), self._forget)
        return self.errors

    def look_again(self) -> None:
        """At the tags, which others write too."""
        self._there.tags = _tags(self.cloud, self._there.project)

    def _note(self, step: Step) -> None:
        self._add(TAG + step.key)

    def _forget(self, step: Step) -> None:
        self.remove(self._tag(TAG + step.key))

    def _lend(self, step: Step) -> None:
        item = step.wanted or {}
        self._add(self._prefix(item) + self._owner)
        self.write("PUT", self._grant(item))

    def _take_back(self, step: Step) -> None:
        """The note goes last, so that a run that ends before leaves no role that nobody takes back."""
        item = step.before or {}
        note = self._prefix(item) + self._owner
        alone = not self._lent_for_others(item)
        if alone:
            self.remove(self._grant(item))
        self.remove(self._tag(note))
        if alone and self._lent_for_others(item):  # since just now
            self.write("PUT", self._grant(item))
        elif not alone and not self._lent_for_others(item):  # they have just ended, and saw this note
            self.remove(self._grant(item))

    def _lent_for_others(self, item: Object) -> bool:
        self.look_again()
        prefix = self._prefix(item)
        return any(tag.startswith(prefix) and tag != prefix + self._owner for tag in self._there.tags)

    def _prefix(self, item: Object) -> str:
        return "%s%s:%s:" % (_LENT, item["role"], item["user"])

    def _add(self, tag: str) -> None:
        """Keystone refuses a tag that is there."""
        if tag not in self._there.tags:
            self.write("PUT", self._tag(tag))

    def _tag(self, tag: str) -> str:
        return "/projects/%s/tags/%s" % (self._there.project, quote(tag, safe=""))

    def _grant(self, item: Object) -> str:
        return "/projects/%s/users/%s/roles/%s" % (self._there.project, item["user"], item["role"])
