# SPDX-License-Identifier: GPL-3.0-or-later
"""The certificate of the webhooks in a Secret, which all replicas share. Any of them creates and renews it.

A renewal has two steps, so that no request fails. First the new CA joins the old one in the Secret and in the webhook
configurations, while the old certificate stays in use. Some time later, when API servers have both CAs, all replicas
change to the new certificate. Each write requires the version that was read, so the replicas agree.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import datetime
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import structlog

from openipu.kubernetes.cluster.client import SECRETS, ApiError, Client, Object
from openipu.kubernetes.tls import certificates
from openipu.kubernetes.tls.certificates import Issued, KeyPair
from openipu.kubernetes.tls.serving_certificate import ServingCertificate
from openipu.kubernetes.webhooks import registration

_log = structlog.get_logger("openipu.kubernetes.webhooks.rotation")

_CA, _CERTIFICATE, _KEY, _NEXT_CERTIFICATE, _NEXT_KEY = "ca", "cert", "key", "next-cert", "next-key"
_SHORT_PAUSE = 1.0  # seconds until the next attempt, while the webhooks do not work
_ATTEMPTS = 10  # of changes that conflict with those of other replicas


@dataclass(frozen=True, slots=True)
class Stored:
    """Content of the Secret. ``bundle``: CAs of both key pairs. ``next``: the one that replaces ``current`` soon."""

    bundle: bytes
    current: KeyPair
    next: KeyPair | None = None


@dataclass(frozen=True, slots=True)
class Names:
    """Names of objects, and of the host. ``address``: another name of this replica, for new certificates only."""

    namespace: str
    secret: str
    configuration: str
    hosts: Sequence[str]
    address: str = ""


def _utc_now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


class Rotation:
    """Renewal of the certificate of a server, and publication of its CA."""

    def __init__(
        self,
        client: Client,
        names: Names,
        serving: ServingCertificate,
        seconds: float = 30.0,
        now: Callable[[], datetime.datetime] = _utc_now,
    ) -> None:
        """``seconds``: between checks, and from the publication of a new CA to the use of its certificate."""
        self._client = client
        self._names = names
        self._serving = serving
        self._seconds = seconds
        self._now = now
        self._last: Stored | None = None
        self._published: tuple[bytes, float] = b"", 0.0  # bundle, and since when the configurations have it
        self.ready = False

    async def run(self) -> None:
        """Check again and again until cancelled."""
        while True:
            try:
                await self.check()
            except (ApiError, ssl.SSLError) as error:
                _log.warning("certificate of the webhooks not checked", error=str(error))
            await asyncio.sleep(self._seconds if self.ready else min(_SHORT_PAUSE, self._seconds))

    async def check(self) -> None:
        """Create, renew, publish and use the certificate, as necessary. Raises ApiError and ssl.SSLError."""
        for _ in range(_ATTEMPTS):
            found = await self._client.find(SECRETS, self._names.namespace, self._names.secret)
            before = None if found is None else _decode(found)
            if before is not None and self._is_usable(before):
                await self._publish(before)
            after = self._next_step(before)
            try:
                if after is not before:
                    await self._write(found, after)
            except ApiError as error:
                if error.is_conflict or error.already_exists or error.is_missing:
                    continue  # another replica was faster
                raise
            complete = await self._publish(after)
            if self._serving.use(after.current):
                _log.info("certificate in use", expires=str(certificates.expiry(after.current)))
            self._last, self.ready = after, complete
            return
        raise ApiError(
            f"Secret {self._names.namespace}/{self._names.secret} changes all the time. Find which program writes it."
        )

    async def _publish(self, stored: Stored) -> bool:
        """Write the CAs to the webhook configurations. Return whether both exist."""
        result = await registration.publish(self._client, self._names.configuration, stored.bundle)
        if result.changed or stored.bundle != self._published[0]:
            self._published = stored.bundle, time.monotonic()
        if not result.complete and (self.ready or self._last is None):
            _log.warning("webhook configuration is missing", name=self._names.configuration)
        return result.complete

    def _next_step(self, stored: Stored | None) -> Stored:
        if stored is None or not self._is_usable(stored):
            if self._last is not None and self._is_usable(self._last):
                # So that no replica needs a new certificate at once.
                _log.warning("certificate stored again: the Secret was deleted or damaged", name=self._names.secret)
                return self._last
            issued = self._issue()
            return Stored(issued.authority, issued.pair)
        if stored.next is not None and self._is_usable(replace(stored, current=stored.next)):
            bundle, since = self._published
            if stored.bundle != bundle or time.monotonic() - since < self._seconds:
                return stored
            _log.info("certificate renewed")
            return Stored(stored.bundle, stored.next)
        if not certificates.is_due(stored.current, self._now()):
            return stored
        issued = self._issue()
        bundle = certificates.issuers(stored.current, stored.bundle) + issued.authority
        return Stored(bundle, stored.current, issued.pair)

    def _issue(self) -> Issued:
        hosts = [*self._names.hosts, *filter(None, [self._names.address])]
        _log.info("certificate created", hosts=hosts)
        return certificates.issue(hosts)

    def _is_usable(self, stored: Stored) -> bool:
        return certificates.is_usable(stored.current, stored.bundle, self._names.hosts, self._now())

    async def _write(self, found: Object | None, stored: Stored) -> None:
        data = {_CA: stored.bundle, _CERTIFICATE: stored.current.certificate, _KEY: stored.current.key}
        if stored.next is not None:
            data |= {_NEXT_CERTIFICATE: stored.next.certificate, _NEXT_KEY: stored.next.key}
        encoded = {name: base64.b64encode(value).decode() for name, value in data.items()}
        if found is not None:
            await self._client.replace(SECRETS, {**found, "data": encoded})
            return
        metadata = {"namespace": self._names.namespace, "name": self._names.secret}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": encoded}
        await self._client.create(SECRETS, secret)


def _decode(secret: Object) -> Stored | None:
    """Return the content of a Secret, None if it has none."""
    try:
        data = {name: base64.b64decode(text) for name, text in (secret.get("data") or {}).items()}
        stored = Stored(data[_CA], KeyPair(data[_CERTIFICATE], data[_KEY]))
    except (KeyError, binascii.Error):
        return None
    if _NEXT_CERTIFICATE not in data or _NEXT_KEY not in data:
        return stored
    return replace(stored, next=KeyPair(data[_NEXT_CERTIFICATE], data[_NEXT_KEY]))
