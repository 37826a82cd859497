# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages in Python, YAML and scripts, and their rows on the pages of messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.messages import messages
from tools.reference.messages import row


def found(folder: Path, name: str, text: str) -> dict[str, int]:
    path = folder / name
    path.write_text(text)
    return messages(path)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ('raise Error(f"cannot use {value} as a name")', {"cannot use … as a name": 1}),
        ('x = 1\nreason = "it has no name yet"', {"it has no name yet": 2}),
        ('mistakes.add(block.error("the list is empty: add one"))', {"the list is empty: add one": 1}),
        ('problems.append("the domain %s has no host" % name)', {"the domain … has no host": 1}),
        ('def f():\n    text = "the name %s is used"\n    raise Error(1, text % name)', {"the name … is used": 2}),
        ('def f():\n    part = "and two more names"\n    raise Error(f"a {part}")', {}),
        ('def f():\n    remedy = "Correct the name of it"\n    raise Error(remedy)', {}),
        ('def f():\n    text = "the sky is blue here"\n\ndef g(text):\n    raise Error(1, text)', {}),
        ('raise Error(f"Cannot use {a}: write {{{{ … }}}}")', {"Cannot use …: write {{ … }}": 1}),
        ('raise Error(f"Cannot use {a}: {b}.")', {}),
        ('raise Error("invalid %s %04X: use %d" % value)', {"invalid … …: use …": 1}),
        ('_OPEN = "a quote is not closed"\nraise Error(_OPEN)', {"a quote is not closed": 1}),
        (
            'def f():\n    """Return the message for a name."""\n    return "the name is not known"',
            {"the name is not known": 3},
        ),
        ('return_value = "is not YAML: write a space"', {"is not YAML: write a space": 1}),
        ('_REMEDY = "Correct the name of it"\nraise Error(_REMEDY)', {}),
        ('raise ConsequenceError("the name is not known")', {}),
        ('_log.error("cannot write the file yet")', {}),
        ('verb = "Cannot read the file"', {}),
        ('raise Error("tag:yaml.org,2002:int,of-a-kind")', {}),
        ('def f():\n    """Raise an error for a name."""', {}),
    ],
)
def test_messages_of_python(tmp_path: Path, code: str, expected: dict[str, int]) -> None:
    assert found(tmp_path, "code.py", code) == expected


def test_messages_of_yaml_have_the_line_of_their_value(tmp_path: Path) -> None:
    folded = "- a: 1\n  msg: >-\n    Cannot read {{ file }}:\n    it is empty.\n"
    text = folded + "- b: \"{{ 'Cannot use ' ~ b ~ ' here: it is old.' }}\"\n"
    assert found(tmp_path, "tasks.yml", text) == {"Cannot read …: it is empty.": 2, "Cannot use … here: it is old.": 5}


def test_messages_of_scripts(tmp_path: Path) -> None:
    text = '#!/bin/sh\nfail "Cannot set mode ${mode} on \'$port\'. Check dmesg."\necho "Done with $port"\n'
    assert found(tmp_path, "script", text) == {"Cannot set mode … on …. Check dmesg.": 2}


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        ("Cannot read …: it is empty. Write it.", "Cannot read …: it is empty", "Write it."),
        ("Cannot plan …: it is listed at …[…]. Remove it.", "Cannot plan …: it is listed at …[…]", "Remove it."),
        ("Cannot restore …: … See its log.", "Cannot restore …: …", "See its log."),
        ("Cannot start …: …. …, then run it again.", "Cannot start …: …", "…, then run it again."),
        ("Cannot use …: set more than 0.", "Cannot use …", "set more than 0."),
        ("No such command …: it is a fault, so use …", "No such command …: it is a fault", "use …"),
        ("the list … is empty: add one", "the list … is empty", "add one"),
        ("it lists … sizes; at most … are allowed", "it lists … sizes", "at most … are allowed"),
        ("Cannot create …: ….", "Cannot create …: …", "See the end of the message."),
        ("Cannot reach …: it …", "Cannot reach …: it …", "See the end of the message."),
        ("Cannot use …: it must be a number.", "Cannot use …: it must be a number", "The message states it."),
        ("Choose one of --a and --b.", "Choose one of --a and --b", "The message states it."),
    ],
)
def test_remedy_of_a_message(text: str, message: str, remedy: str) -> None:
    assert row(text, "plugins/modules/x.py:1")[:3] == (message, remedy, False)


@pytest.mark.parametrize("text", ["Cannot read …: it is damaged.", "The file has no name.", "--a does not fit to --b."])
def test_a_complete_message_without_a_remedy_is_found(text: str) -> None:
    found = row(text, "plugins/modules/x.py:1")
    assert (found.remedy, found.is_cause) == ("", False)


@pytest.mark.parametrize(
    ("text", "place", "is_cause"),
    [
        ("it has no name yet", "plugins/modules/x.py:1", True),
        ("'a' has no name yet", "plugins/modules/x.py:1", True),
        ("the unit … has no name", "plugins/module_utils/pod/x.py:1", False),
        ("agent … has no name", "src/openipu/vipu/domain/x.py:1", False),
        ("The log of revisions is empty.", "src/openipu/vipu/storage/x.py:1", True),
        ("Cannot read the log …: it is empty.", "src/openipu/vipu/storage/x.py:1", False),
    ],
)
def test_only_parts_of_other_messages_are_causes(text: str, place: str, is_cause: bool) -> None:
    found = row(text, place)
    assert (found.remedy, found.is_cause) == ("", is_cause)
