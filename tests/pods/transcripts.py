# SPDX-License-Identifier: GPL-3.0-or-later
"""Printed transcripts of commands: what differs between runs is masked."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).parent / "transcripts"
_MASKS = (
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| [+-]\d{4} \w+)?"), "TIME"),
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "UID"),
    (re.compile(r"(controller-manager|vipu-proxy)-[0-9a-f]+-\w{5}\b"), r"\1-HASH"),
    (re.compile(r"^( *(?:Observed )?Generation| *Resource Version):.*$", re.MULTILINE), r"\1: NUMBER"),
    (re.compile(r"\b(\d+[hms])+\b"), "AGE"),
)
_FIELDS = re.compile(r"^  Managed Fields:\n(?:    .*\n)+", re.MULTILINE)


def masked(text: str, **names: str) -> str:
    """Return a transcript without times, ids, counters, managed fields and events, and with single spaces in lines.

    ``names``: mask -> a text of this run that it replaces.
    """
    text = _FIELDS.sub("", text).partition("\nEvents:")[0]
    for mask, found in names.items():
        text = text.replace(found, mask)
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    lines = (re.sub(r"(?<=\S) +", " ", line.rstrip()) for line in text.strip("\n").splitlines())
    return "\n".join(lines)


def expected(name: str) -> str:
    """Return an expected transcript, without its comments."""
    lines = (FOLDER / f"{name}.txt").read_text().splitlines()
    return "\n".join(line for line in lines if not line.startswith("#"))
