# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: openipu.pod contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Generated from proto/ by tools/contract.py; do not edit."""

from __future__ import annotations

from ansible_collections.openipu.pod.plugins.module_utils.vipu.wire import Package

twin = Package(
    "openipu.twin.v1",
    (
        "ChpvcGVuaXB1L3R3aW4vdjEvdHdpbi5wcm90bxIPb3BlbmlwdS50d2luLnYxIosBCgdNYWNoaW5lEhkKCGFnZW50X2lkGAEgASgJ"
        "UgdhZ2VudElkEhIKBGhvc3QYAiABKAlSBGhvc3QSEgoEcG9ydBgDIAEoDVIEcG9ydBIYCgdydW5uaW5nGAQgASgIUgdydW5uaW5n"
        "EiMKDXBhcnRpdGlvbl9pZHMYBSADKAlSDHBhcnRpdGlvbklkcyIVChNMaXN0TWFjaGluZXNSZXF1ZXN0IkkKEUxpc3RNYWNoaW5l"
        "c1JlcGx5EjQKCG1hY2hpbmVzGAEgAygLMhgub3BlbmlwdS50d2luLnYxLk1hY2hpbmVSCG1hY2hpbmVzIi0KDk1hY2hpbmVSZXF1"
        "ZXN0EhsKCWFnZW50X2lkcxgBIAMoCVIIYWdlbnRJZHMiDgoMTWFjaGluZVJlcGx5IisKEU1ha2VGYXVsdHNSZXF1ZXN0EhYKBmZh"
        "dWx0cxgBIAMoCVIGZmF1bHRzIhEKD01ha2VGYXVsdHNSZXBseSITChFMaXN0RmF1bHRzUmVxdWVzdCInCg9MaXN0RmF1bHRzUmVw"
        "bHkSFAoFd3JvbmcYASADKAlSBXdyb25nMrADCgtUd2luU2VydmljZRJYCgxMaXN0TWFjaGluZXMSJC5vcGVuaXB1LnR3aW4udjEu"
        "TGlzdE1hY2hpbmVzUmVxdWVzdBoiLm9wZW5pcHUudHdpbi52MS5MaXN0TWFjaGluZXNSZXBseRJOCgxTdG9wTWFjaGluZXMSHy5v"
        "cGVuaXB1LnR3aW4udjEuTWFjaGluZVJlcXVlc3QaHS5vcGVuaXB1LnR3aW4udjEuTWFjaGluZVJlcGx5Ek8KDVN0YXJ0TWFjaGlu"
        "ZXMSHy5vcGVuaXB1LnR3aW4udjEuTWFjaGluZVJlcXVlc3QaHS5vcGVuaXB1LnR3aW4udjEuTWFjaGluZVJlcGx5ElIKCk1ha2VG"
        "YXVsdHMSIi5vcGVuaXB1LnR3aW4udjEuTWFrZUZhdWx0c1JlcXVlc3QaIC5vcGVuaXB1LnR3aW4udjEuTWFrZUZhdWx0c1JlcGx5"
        "ElIKCkxpc3RGYXVsdHMSIi5vcGVuaXB1LnR3aW4udjEuTGlzdEZhdWx0c1JlcXVlc3QaIC5vcGVuaXB1LnR3aW4udjEuTGlzdEZh"
        "dWx0c1JlcGx5YgZwcm90bzM=",
    ),
)
