# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: openipu.pod contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Generated from proto/ by tools/contract.py; do not edit."""

from __future__ import annotations

from ansible_collections.openipu.pod.plugins.module_utils.vipu.wire import Package

twin = Package(
    "openipu.twin.v1",
    (
        "ChpvcGVuaXB1L3R3aW4vdjEvdHdpbi5wcm90bxIPb3BlbmlwdS50d2luLnYxIqEBCgdNYWNoaW5lEhkKCGFnZW50X2lkGAEgASgJ"
        "UgdhZ2VudElkEhIKBGhvc3QYAiABKAlSBGhvc3QSEgoEcG9ydBgDIAEoDVIEcG9ydBIYCgdydW5uaW5nGAQgASgIUgdydW5uaW5n"
        "EiMKDXBhcnRpdGlvbl9pZHMYBSADKAlSDHBhcnRpdGlvbklkcxIUCgVmYXVsdBgGIAEoCVIFZmF1bHQiFQoTTGlzdE1hY2hpbmVz"
        "UmVxdWVzdCJJChFMaXN0TWFjaGluZXNSZXBseRI0CghtYWNoaW5lcxgBIAMoCzIYLm9wZW5pcHUudHdpbi52MS5NYWNoaW5lUght"
        "YWNoaW5lcyItCg5NYWNoaW5lUmVxdWVzdBIbCglhZ2VudF9pZHMYASADKAlSCGFnZW50SWRzIg4KDE1hY2hpbmVSZXBseSJhCg9T"
        "ZXRGYXVsdFJlcXVlc3QSGQoIYWdlbnRfaWQYASABKAlSB2FnZW50SWQSFAoFZmF1bHQYAiABKAlSBWZhdWx0EhUKA2lwdRgDIAEo"
        "DUgAUgNpcHWIAQFCBgoEX2lwdSIPCg1TZXRGYXVsdFJlcGx5MtYCCgtUd2luU2VydmljZRJYCgxMaXN0TWFjaGluZXMSJC5vcGVu"
        "aXB1LnR3aW4udjEuTGlzdE1hY2hpbmVzUmVxdWVzdBoiLm9wZW5pcHUudHdpbi52MS5MaXN0TWFjaGluZXNSZXBseRJOCgxTdG9w"
        "TWFjaGluZXMSHy5vcGVuaXB1LnR3aW4udjEuTWFjaGluZVJlcXVlc3QaHS5vcGVuaXB1LnR3aW4udjEuTWFjaGluZVJlcGx5Ek8K"
        "DVN0YXJ0TWFjaGluZXMSHy5vcGVuaXB1LnR3aW4udjEuTWFjaGluZVJlcXVlc3QaHS5vcGVuaXB1LnR3aW4udjEuTWFjaGluZVJl"
        "cGx5EkwKCFNldEZhdWx0EiAub3BlbmlwdS50d2luLnYxLlNldEZhdWx0UmVxdWVzdBoeLm9wZW5pcHUudHdpbi52MS5TZXRGYXVs"
        "dFJlcGx5YgZwcm90bzM=",
    ),
)
