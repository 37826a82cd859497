# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates of a user, and the files of one of them on the host of the task. Its private key is made here."""

from __future__ import annotations

import datetime
import typing as t
from dataclasses import replace
from pathlib import Path

from ..atomic_files import write_private
from ..reconcile import Object
from ..runner import TaskError
from . import certificates, userfile
from .client import Connection, VipuError
from .convergence import call_after_write
from .options import Run, connection

OPTIONS: dict[str, t.Any] = {
    "certificate": {"type": "bool"},
    "certificate_renew_within": {"type": "int", "default": 30},
    "revoked_certificates": {"type": "list", "elements": "str"},
}

_MIN_PREFIX = 8  # digits of a fingerprint that select a certificate

_T = t.TypeVar("_T")


class Outcome(t.NamedTuple):
    """Certificates of the user before and after the task, in check mode the predicted ones."""

    changed: bool
    before: list[Object]
    after: list[Object]
    files: tuple[Path, Path]


class _Plan(t.NamedTuple):
    issue: bool
    key: str | None  # fingerprint of the existing key to use; None for a new key
    revoke: list[str]


def converge_certificates(run: Run, config: Path, created: bool) -> Outcome | None:
    """Issue, renew and revoke certificates as the options describe; None when they are not managed.

    ``config``: configuration of the user, whose folder has the files of the certificate. ``created``: whether this task
    created the user, in check mode whether it would.
    """
    user, check = run.params["id"], run.check_mode
    files = certificates.paths(config.parent, user)
    issued = run.transport.issued(user)
    if issued:
        for file, content in zip(files, issued, strict=True):
            _write(file, content)
        userfile.set_certificate(config, *files, check_mode=False)
        return None
    revoked = run.params["revoked_certificates"] or []
    known = _read(run, files[1], created)
    if known is None:
        return None
    before: list[Object] = known["certificates"]
    manage = known["required"] if run.params["certificate"] is None else run.params["certificate"]
    if not manage and not revoked:
        return None
    plan = _plan(run, before, files, manage, [] if created else revoked)
    if check:
        differs = manage and userfile.set_certificate(config, *files, check_mode=True)
        return Outcome(plan.issue or bool(plan.revoke) or differs, before, _predicted(before, plan), files)
    if plan.issue:
        _issue(run, user, files, plan)
    changed = plan.issue

    def follow_up() -> bool:
        differs = manage and userfile.set_certificate(config, *files, check_mode=False)
        for key in plan.revoke:  # after the issue: the last certificate of the last administrator cannot be revoked
            run.transport.revoke_certificate(user, key)
        return differs or bool(plan.revoke)

    changed = call_after_write(changed, follow_up) or changed
    if not changed:
        return Outcome(False, before, before, files)
    if plan.issue and not known["required"] and user == connection(run.params).user_id:
        run.warnings.append(
            "From now on, user '%s' can call only with this certificate. Set client_cert and client_key of the "
            "connection to client_cert and client_key of the result." % user
        )
        return Outcome(True, before, _predicted(before, plan), files)
    after = call_after_write(True, lambda: run.transport.certificates(user)["certificates"])
    return Outcome(True, before, after, files)


def check_possible(run: Run) -> None:
    """Raise TaskError when the task needs a certificate that a controller without TLS does not issue."""
    params = run.params
    issues = params["state"] == "present" and params["certificate"] and params["transport"] == "grpc"
    if issues and not connection(params).secure:
        raise TaskError(
            "Cannot issue a certificate for user '%s': the controller runs without --secure. Start vipu-server with "
            "--secure and set ca_path, client_cert and client_key, or omit certificate. Nothing was changed."
            % params["id"]
        )


def without_foreign_certificate(run: Run, file: Path) -> Connection:
    """Return the connection for the file of a new user, without a certificate with which this user cannot call."""
    base = connection(run.params)
    if not base.client_cert:
        return base
    own = foreign = False
    try:
        own = run.transport.certificates(run.params["id"])["required"]
        foreign = not own and bool(base.user_id) and run.transport.certificates(str(base.user_id))["required"]
    except VipuError:  # the access key is returned only once, so the file must be written in any case
        pass
    if foreign and not run.params["certificate"]:
        run.warnings.append(
            "File '%s' names no certificate, because the one of this task is for user '%s' only. Set client-cert and "
            "client-key in the file to the shared certificate, or set certificate to true." % (file, base.user_id)
        )
    return replace(base, client_cert=None, client_key=None) if own or foreign else base


def _read(run: Run, key_file: Path, created: bool) -> Object | None:
    """Return the certificates of the user and whether it needs one; None when nothing is managed."""
    automatic = run.params["certificate"] is None and not run.params["revoked_certificates"]
    # A user of a shared controller, or of another host of Ansible, keeps its certificates.
    if automatic and not (connection(run.params).secure and (created or key_file.exists())):
        return None
    if created and run.check_mode:
        return {"certificates": [], "required": False}
    try:
        return run.transport.certificates(run.params["id"])
    except VipuError as error:
        if automatic and error.code == "UNIMPLEMENTED":
            return None
        raise


def _plan(run: Run, known: list[Object], files: tuple[Path, Path], manage: bool, revoked: list[str]) -> _Plan:
    user = run.params["id"]
    revoked = [_full(user, given, known) for given in revoked]
    valid = [each["key"] for each in known if not each["revoked"]]
    revoke = [key for key in valid if key in revoked]
    if not manage:
        return _Plan(False, None, revoke)
    certificate_file, key_file = files
    key = _use(key_file, lambda: certificates.fingerprint(key_file))
    if key in revoked or any(each["key"] == key and each["revoked"] for each in known):
        key = None
    until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=run.params["certificate_renew_within"])
    is_valid = key in valid and _use(certificate_file, lambda: certificates.is_valid(certificate_file, str(key), until))
    return _Plan(not is_valid, key, revoke)


def _full(user: str, given: str, known: list[Object]) -> str:
    """Return the fingerprint that starts with the given digits. Raises TaskError."""
    found = sorted({each["key"] for each in known if each["key"].startswith(given.lower())})
    if len(found) == 1 and len(given) >= _MIN_PREFIX:
        return str(found[0])
    cause = (
        "it has none with this key fingerprint"
        if not found
        else "%d fingerprints start with it" % len(found)
        if len(found) > 1
        else "a fingerprint needs at least %d digits" % _MIN_PREFIX
    )
    raise TaskError(
        "Cannot revoke certificate '%s' of user '%s': %s. Correct revoked_certificates." % (given, user, cause)
    )


def _issue(run: Run, user: str, files: tuple[Path, Path], plan: _Plan) -> None:
    certificate_file, key_file = files

    def request() -> bytes:
        if plan.key is None:
            key_file.unlink(missing_ok=True)
        return certificates.signing_request(key_file, user)

    with certificates.discarding_new_key(key_file):
        pem = run.transport.issue_certificate(user, _use(key_file, request))
    call_after_write(True, lambda: _write(certificate_file, pem))


def _write(file: Path, content: str) -> None:
    _use(file, lambda: write_private(file, content))


def _use(file: Path, function: t.Callable[[], _T]) -> _T:
    """Call a function that uses a file, and convert its errors to TaskError."""
    try:
        return function()
    except ImportError as error:
        raise TaskError(
            "Cannot manage the certificate '%s': this Python has no library %s. Install it, or set certificate to "
            "false." % (file, error.name)
        ) from None
    except OSError as error:
        raise TaskError("Cannot use file '%s': %s." % (file, (error.strerror or str(error)).lower())) from None
    except (ValueError, TypeError):
        raise TaskError(
            "Cannot use the key '%s': it is not an unencrypted elliptic curve key in PEM. Remove the file to get a new "
            "key." % file
        ) from None


def _predicted(known: list[Object], plan: _Plan) -> list[Object]:
    kept = [{**each, "revoked": each["revoked"] or each["key"] in plan.revoke} for each in known]
    if not plan.issue:
        return kept
    new = {"key": plan.key, "serial": None, "valid_until": None, "revoked": False}
    return [*(each for each in kept if each["key"] != plan.key), new]
