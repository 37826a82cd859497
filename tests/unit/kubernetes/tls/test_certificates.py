# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates of the webhook server."""

from __future__ import annotations

import datetime
import ssl
from dataclasses import replace

import pytest

from openipu.kubernetes.tls import certificates
from openipu.kubernetes.tls.certificates import KeyPair
from openipu.kubernetes.tls.serving_certificate import ServingCertificate

HOSTS = ["webhooks.ns.svc", "127.0.0.1"]
DAY = datetime.timedelta(days=1)


def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def test_a_certificate_lasts_a_year_and_is_due_when_a_third_is_left() -> None:
    pair = certificates.issue(HOSTS).pair
    expiry = certificates.expiry(pair)
    assert abs(expiry - now() - 365 * DAY) < DAY
    assert not certificates.is_due(pair, expiry - 123 * DAY)
    assert certificates.is_due(pair, expiry - 121 * DAY)


def test_a_certificate_is_usable_for_its_names_and_time_only() -> None:
    issued, other = certificates.issue(HOSTS), certificates.issue(HOSTS)
    pair, bundle = issued.pair, other.authority + issued.authority
    assert certificates.is_usable(pair, bundle, HOSTS, now())
    assert not certificates.is_usable(pair, bundle, [*HOSTS, "other.ns.svc"], now())
    assert not certificates.is_usable(pair, bundle, HOSTS, now() + 366 * DAY)
    assert not certificates.is_usable(pair, bundle, HOSTS, now() - DAY)
    assert not certificates.is_usable(pair, other.authority, HOSTS, now())
    assert not certificates.is_usable(replace(pair, key=other.pair.key), bundle, HOSTS, now())


@pytest.mark.parametrize("damaged", [b"", b"text", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_damaged_files_are_not_usable(damaged: bytes) -> None:
    issued = certificates.issue(HOSTS)
    assert not certificates.is_usable(replace(issued.pair, certificate=damaged), issued.authority, HOSTS, now())
    assert not certificates.is_usable(replace(issued.pair, key=damaged), issued.authority, HOSTS, now())
    assert not certificates.is_usable(issued.pair, damaged, HOSTS, now())


def test_only_the_issuer_stays_in_the_bundle() -> None:
    issued, other = certificates.issue(HOSTS), certificates.issue(HOSTS)
    assert certificates.issuers(issued.pair, other.authority + issued.authority) == issued.authority


def test_the_text_of_a_key_pair_has_no_key() -> None:
    pair = certificates.issue(HOSTS).pair
    assert "PRIVATE KEY" not in repr(pair)
    assert "CERTIFICATE" in repr(pair)


def test_long_names_fit() -> None:
    host = f"{'a' * 63}.{'b' * 63}.svc"
    issued = certificates.issue([host])
    assert certificates.is_usable(issued.pair, issued.authority, [host], now())


def test_a_server_rejects_a_foreign_key() -> None:
    serving, pair = ServingCertificate(), certificates.issue(HOSTS).pair
    assert serving.use(pair)
    assert not serving.use(pair)
    with pytest.raises(ssl.SSLError):
        serving.use(KeyPair(pair.certificate, certificates.issue(HOSTS).pair.key))
    assert serving.pair == pair
