# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: openipu.pod contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Generated from proto/ by tools/contract.py; do not edit."""

from __future__ import annotations

from openipu.shared.vipu.wire import Package

twin = Package(
    "openipu.twin.v1",
    (
        "ChpvcGVuaXB1L3R3aW4vdjEvdHdpbi5wcm90bxIPb3BlbmlwdS50d2luLnYxIosBCgdNYWNoaW5lEhkKCGFnZW50X2lkGAEgASgJ"
        "UgdhZ2VudElkEhIKBGhvc3QYAiABKAlSBGhvc3QSEgoEcG9ydBgDIAEoDVIEcG9ydBIYCgdydW5uaW5nGAQgASgIUgdydW5uaW5n"
        "EiMKDXBhcnRpdGlvbl9pZHMYBSADKAlSDHBhcnRpdGlvbklkcyIVChNMaXN0TWFjaGluZXNSZXF1ZXN0IkkKEUxpc3RNYWNoaW5l"
        "c1JlcGx5EjQKCG1hY2hpbmVzGAEgAygLMhgub3BlbmlwdS50d2luLnYxLk1hY2hpbmVSCG1hY2hpbmVzIi0KDk1hY2hpbmVSZXF1"
        "ZXN0EhsKCWFnZW50X2lkcxgBIAMoCVIIYWdlbnRJZHMiDgoMTWFjaGluZVJlcGx5IisKEU1ha2VGYXVsdHNSZXF1ZXN0EhYKBmZh"
        "dWx0cxgBIAMoCVIGZmF1bHRzIhEKD01ha2VGYXVsdHNSZXBseSKWAQoGRGVmZWN0EhQKBWZhdWx0GAEgASgJUgVmYXVsdBIUCgV3"
        "aGVyZRgCIAEoCVIFd2hlcmUSGAoHbWVzc2FnZRgDIAEoCVIHbWVzc2FnZRIUCgVmb3VuZBgEIAEoCVIFZm91bmQSGgoIZXhwZWN0"
        "ZWQYBSABKAlSCGV4cGVjdGVkEhQKBWNhYmxlGAYgAygJUgVjYWJsZSIUChJMaXN0RGVmZWN0c1JlcXVlc3QiRQoQTGlzdERlZmVj"
        "dHNSZXBseRIxCgdkZWZlY3RzGAEgAygLMhcub3BlbmlwdS50d2luLnYxLkRlZmVjdFIHZGVmZWN0czKzAwoLVHdpblNlcnZpY2US"
        "WAoMTGlzdE1hY2hpbmVzEiQub3BlbmlwdS50d2luLnYxLkxpc3RNYWNoaW5lc1JlcXVlc3QaIi5vcGVuaXB1LnR3aW4udjEuTGlz"
        "dE1hY2hpbmVzUmVwbHkSTgoMU3RvcE1hY2hpbmVzEh8ub3BlbmlwdS50d2luLnYxLk1hY2hpbmVSZXF1ZXN0Gh0ub3BlbmlwdS50"
        "d2luLnYxLk1hY2hpbmVSZXBseRJPCg1TdGFydE1hY2hpbmVzEh8ub3BlbmlwdS50d2luLnYxLk1hY2hpbmVSZXF1ZXN0Gh0ub3Bl"
        "bmlwdS50d2luLnYxLk1hY2hpbmVSZXBseRJSCgpNYWtlRmF1bHRzEiIub3BlbmlwdS50d2luLnYxLk1ha2VGYXVsdHNSZXF1ZXN0"
        "GiAub3BlbmlwdS50d2luLnYxLk1ha2VGYXVsdHNSZXBseRJVCgtMaXN0RGVmZWN0cxIjLm9wZW5pcHUudHdpbi52MS5MaXN0RGVm"
        "ZWN0c1JlcXVlc3QaIS5vcGVuaXB1LnR3aW4udjEuTGlzdERlZmVjdHNSZXBseWIGcHJvdG8z",
    ),
)
