# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificate files of a controller: selection, and warnings about them and about users without certificates."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click
import structlog

from openipu.vipu.tls import load, renew

if TYPE_CHECKING:
    from openipu.vipu.domain.model import User

SOON = datetime.timedelta(days=14)  # certificates that are renewed automatically have been renewed before
_MOST_NAMED = 10  # users in one warning

Files = tuple[Path, Path, Path]
"""Authority, certificate and key."""

_log = structlog.get_logger("vipu-server")


def agent_files(ca: Path | None, certificate: Path | None, key: Path | None) -> Files | None:
    """Return the files for TLS with agents, None for no TLS. Raises UsageError unless all or none are given."""
    if ca and certificate and key:
        return ca, certificate, key
    if ca or certificate or key:
        raise click.UsageError(
            "Cannot start the controller: --agent-tls-ca, --agent-tls-certificate and --agent-tls-key belong together. "
            "Set all three or none."
        )
    return None


def in_use(certs: Path | None, agents: Files | None) -> list[Files]:
    """Return the files that a controller uses: those of its server in ``certs``, and those for agents."""
    server = certs and certs / load.SERVER
    own = [(server / load.CA, server / "server.crt", server / "server.key")] if server else []
    return [*own, *([agents] if agents else [])]


def expiry(found: Iterable[Files]) -> datetime.datetime | None:
    """Return the first end of validity, None without files. Raises TlsError for files that are not valid now."""
    ends = []
    for files in found:
        load.check(files)
        ends.append(renew.certificate(files[1]).not_valid_after_utc)
    return min(ends, default=None)


def warn(found: Iterable[Files], *, agents_in_clear: bool) -> None:
    """Log certificates that expire soon, and agents without TLS. Raises TlsError for files that are not valid now."""
    for files in found:
        end = expiry([files])
        if end is not None and end <= datetime.datetime.now(datetime.UTC) + SOON:
            _log.warning("certificate expires soon", file=str(files[1]), until=f"{end:%Y-%m-%d}")
    if agents_in_clear:
        _log.warning("connections to agents have no TLS: their network can control all IPUs; see --agent-tls-ca")


def warn_about_users(users: Iterable[User], *, shared: bool) -> None:
    """Log users of a secure controller with certificates that are shared or expire soon, and missing administrators.

    ``shared``: new users may use shared certificates.
    """
    from openipu.vipu.domain.certificates import can_call, needs_own
    from openipu.vipu.domain.certificates import expiry as expiry_of_user
    from openipu.vipu.domain.model import Role

    known = sorted(users, key=lambda user: user.id)
    sharing = [user.id for user in known if not needs_own(user)]
    if shared:
        _log.warning("new users share certificates, which cannot be revoked for one of them; see --client-certificates")
    if sharing:
        _log.warning(
            "users share certificates, which cannot be revoked for one of them; see 'vipu-admin create certificate'",
            users=" ".join(sharing[:_MOST_NAMED]),
            number=len(sharing),
        )
    limit = (datetime.datetime.now(datetime.UTC) + SOON).timestamp()
    expiring = [user.id for user in known if (end := expiry_of_user(user)) is not None and end <= limit]
    if expiring:
        _log.warning(
            "certificates of users have expired or expire soon; see 'vipu-admin create certificate'",
            users=" ".join(expiring[:_MOST_NAMED]),
            number=len(expiring),
        )
    admins = [user for user in known if user.role is Role.ADMIN]
    if not admins:
        _log.warning("no administrator exists; see 'vipu-server --init --secure'")
    elif not any(map(can_call, admins)):
        _log.warning("no administrator has a certificate; see 'vipu-server admin-certificate'")
