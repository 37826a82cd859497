# SPDX-License-Identifier: GPL-3.0-or-later
"""Warnings of a starting controller about users and their certificates."""

from __future__ import annotations

from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from openipu.vipu.domain.model import Certificate, Role, User
from openipu.vipu.server.certificates import warn_about_users

LATER = 4_000_000_000
OWN, REVOKED = Certificate("k1", "1", LATER), Certificate("k1", "1", LATER, revoked=True)


def user(id: str, *own: Certificate, shared: bool = False, role: Role = Role.USER) -> User:
    return User(id, role, (), "hash", "salt", own, shared)


ROOT = user("root", OWN, role=Role.ADMIN)


@pytest.mark.parametrize(
    ("users", "shared", "expected"),
    [
        ([user("root", OWN, role=Role.ADMIN), user("alice", OWN), user("bob")], False, []),
        ([user("root", OWN, role=Role.ADMIN)], True, ["new users share"]),
        (
            [user("bob", shared=True), user("alice", shared=True), user("root", OWN, shared=True, role=Role.ADMIN)],
            False,
            ["users share"],
        ),
        ([user("root", REVOKED, role=Role.ADMIN), user("alice", OWN)], False, ["no administrator has"]),
        ([user("root", role=Role.ADMIN), user("root2", OWN, role=Role.ADMIN)], False, []),
        ([user("alice", OWN)], False, ["no administrator exists"]),
    ],
)
def test_users_that_share_and_administrators_that_cannot_call(
    users: list[User], shared: bool, expected: list[str]
) -> None:
    with capture_logs() as logs:
        warn_about_users(users, shared=shared)
    assert [each["log_level"] for each in logs] == ["warning"] * len(expected)
    assert all(each["event"].startswith(text) for each, text in zip(logs, expected, strict=True))
    assert [each["users"] for each in logs if "users" in each] == (["alice bob"] if expected == ["users share"] else [])


def test_a_warning_names_few_users() -> None:
    with capture_logs() as logs:
        warn_about_users([ROOT, *(user(f"u{n:02}", shared=True) for n in range(30))], shared=False)
    (warning,) = logs
    assert (warning["number"], len(warning["users"].split())) == (30, 10)


def test_certificates_of_users_that_expire_soon() -> None:
    """Not those that were revoked or renewed."""
    old = Certificate("k2", "2", 100)
    users = [
        ROOT,
        user("bob", old),
        user("alice", old),
        user("carol", old, OWN),
        user("dave", replace(old, revoked=True)),
    ]
    with capture_logs() as logs:
        warn_about_users(users, shared=False)
    assert [(each["users"], each["number"]) for each in logs] == [("alice bob", 2)]
    assert "'vipu-admin create certificate'" in logs[0]["event"]
