# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters for settings of cloud-init."""

from __future__ import annotations

import base64
import gzip
import re

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.openipu.pod.plugins.filter.gzip_base64 import gzip_base64
from ansible_collections.openipu.pod.plugins.filter.with_prefix import with_prefix
from hypothesis import given
from hypothesis import strategies as st


@given(st.text())
def test_compressed_text_is_unchanged_and_depends_on_the_text_only(text: str) -> None:
    compressed = gzip_base64(text)
    assert gzip.decompress(base64.b64decode(compressed)).decode() == text
    assert gzip_base64(text) == compressed


def test_addresses_get_the_prefix_of_their_subnet() -> None:
    found = with_prefix(
        ["10.1.2.151", "10.1.1.9", "2001:db8::1"], ["10.1.1.0/24", "10.1.2.0/25", "10.1.2.128/25", "2001:db8::/64"]
    )
    assert found == ["10.1.2.151/25", "10.1.1.9/24", "2001:db8::1/64"]


@pytest.mark.parametrize(
    ("addresses", "subnets", "message"),
    [
        (["10.1.3.1"], ["10.1.1.0/24", "10.1.2.0/24"], "10.1.3.1 is in none of the subnets (10.1.1.0/24, 10.1.2.0/24)"),
        (["10.1.3.1"], [], "10.1.3.1 is in none of the subnets (none given)"),
        (["ten"], ["10.1.1.0/24"], "'ten' does not appear to be an IPv4 or IPv6 address"),
        (["10.1.1.1"], ["10.1.1.1/24"], "10.1.1.1/24 has host bits set"),
    ],
)
def test_addresses_outside_of_all_subnets_are_rejected(addresses: list[str], subnets: list[str], message: str) -> None:
    with pytest.raises(AnsibleFilterError, match=re.escape(f"Cannot append a prefix length: {message}")):
        with_prefix(addresses, subnets)
