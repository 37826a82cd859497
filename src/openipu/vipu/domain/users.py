# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules for creating and changing users.

``rules`` describes the interface of ``make_user`` and ``change_user``.
"""

from __future__ import annotations

from dataclasses import replace

from openipu.vipu.domain.certificates import can_call
from openipu.vipu.domain.context import Context
from openipu.vipu.domain.errors import Code, RuleViolation, invalid, missing, quoted
from openipu.vipu.domain.model import Kind, Role, User
from openipu.vipu.domain.specs import UserSpec
from openipu.vipu.domain.state import State
from openipu.vipu.domain.validation import MAX_ALLOCATIONS_PER_USER, check_distinct


def make_user(state: State, spec: UserSpec | User, context: Context) -> User:
    """Return a user, with the hash of an access key and access to existing allocations only."""
    if not isinstance(spec, User):
        raise invalid("a new user needs an access key")
    return replace(spec, role=_role(spec), allocations=_rights(state, spec))


def change_user(state: State, current: User, spec: UserSpec | User, context: Context) -> User:
    """Return the user with another role or other allocations; the access key is kept."""
    role, allocations = _role(spec), _rights(state, spec)
    kept = set(allocations) == set(current.allocations) and spec.all_allocations == current.all_allocations
    if role == current.role and kept:
        return current
    if role is not Role.ADMIN:
        check_admin_stays(state, current, context)
    return replace(current, role=role, allocations=allocations, all_allocations=spec.all_allocations)


def check_admin_stays(state: State, user: User, context: Context) -> None:
    """Raise RuleViolation for the last administrator, or the last one with a valid certificate.

    A secure controller needs it, because only administrators can create others.
    """
    if user.role is not Role.ADMIN or context.keeps_admin:
        return
    others = [other for other in state.users.values() if other.role is Role.ADMIN and other.id != user.id]
    if not others:
        raise RuleViolation(
            Code.FAILED_PRECONDITION, "it is the last administrator. Make another user administrator first"
        )
    # On a controller without TLS, administrators have no certificates.
    if can_call(user) and not any(map(can_call, others)):
        raise RuleViolation(
            Code.FAILED_PRECONDITION,
            "the other administrators have no valid certificates. Create one for another administrator first",
        )


def _role(spec: UserSpec | User) -> Role:
    try:
        return Role(spec.role)
    except ValueError:
        raise invalid(f"the role must be 'user' or 'admin', not {quoted(str(spec.role))}") from None


def _rights(state: State, spec: UserSpec | User) -> tuple[str, ...]:
    if spec.all_allocations and spec.allocations:
        raise invalid("it lists allocations, and also requests all of them. Choose one")
    if len(spec.allocations) > MAX_ALLOCATIONS_PER_USER:
        raise invalid(f"a user can have at most {MAX_ALLOCATIONS_PER_USER} allocations, not {len(spec.allocations)}")
    check_distinct("allocation", spec.allocations)
    for id in spec.allocations:
        if id not in state.allocations:
            raise missing(Kind.ALLOCATION, id)
    return tuple(spec.allocations)
