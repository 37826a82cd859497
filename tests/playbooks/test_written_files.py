# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the module host_files: it writes like the modules of Ansible, and one request finds unchanged files."""

from __future__ import annotations

import grp
import os
import pwd
import re
from pathlib import Path
from typing import Any

import pytest

from tests.integration.collection.playbook import Played, play, rejections, results

ME = {"owner": pwd.getpwuid(os.geteuid()).pw_name, "group": grp.getgrgid(os.getegid()).gr_name}
MODULE = re.compile(r"Using module file \S+/(\w+)\.py")


def task(files: list[dict[str, Any]], **given: Any) -> dict[str, Any]:
    return {"name": "Write", "openipu.pod.host_files": {"files": files, **ME, **given}}


def write(folder: Path, files: list[dict[str, Any]], *options: str, **given: Any) -> dict[str, Any]:
    (done,) = results(folder, [task(files, **given)], *options, color="blue")
    return done


@pytest.fixture
def desired_files(tmp_path: Path) -> list[dict[str, Any]]:
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates/hue.j2").write_text("{% for n in [1, 2] %}\n{{ color }} {{ n }}\n{% endfor %}\n")
    (tmp_path / "picture").write_bytes(bytes(range(256)))
    where = tmp_path / "there"
    return [
        {"path": str(where), "state": "directory", "mode": "0750"},
        {"path": str(where / "hue"), "template": "hue.j2"},
        {"path": str(where / "text*"), "content": "one\ntwo\n", "mode": "0600"},
        {"path": str(where / "picture"), "src": "picture"},
    ]


def test_files_are_created_once_and_only_differences_are_written(
    tmp_path: Path, desired_files: list[dict[str, Any]]
) -> None:
    where = tmp_path / "there"
    paths = [file["path"] for file in desired_files]
    predicted, first, again = results(
        tmp_path, [{**task(desired_files), "check_mode": True}, task(desired_files), task(desired_files)], color="blue"
    )
    assert predicted["files"]["created"] == paths
    assert (first["changed"], first["files"]["created"]) == (True, paths), "check mode made nothing"
    assert (again["changed"], again["files"]["unchanged"]) == (False, paths)
    assert (where / "hue").read_text() == "blue 1\nblue 2\n"
    assert (where / "picture").read_bytes() == bytes(range(256))
    assert [path.stat().st_mode & 0o7777 for path in (where, where / "hue", where / "text*")] == [0o750, 0o644, 0o600]

    (where / "text*").write_text("one\n2\n")
    (where / "hue").chmod(0o666)
    os.utime(where / "picture", (0, 0))
    for repaired in results(
        tmp_path, [{**task(desired_files), "check_mode": True}, task(desired_files)], "--diff", color="blue"
    ):
        assert repaired["files"] == {"created": [], "updated": paths[1:3], "unchanged": [paths[0], paths[3]]}
        before_and_after = [(shown.get("before"), shown.get("after")) for shown in repaired["diff"]]
        assert ("one\n2\n", "one\ntwo\n") in before_and_after
        modes = [pair for pair in before_and_after if isinstance(pair[0], dict)]
        assert {"mode": "0666", "path": paths[1]} in [before for before, _after in modes]
    assert ((where / "hue").stat().st_mode & 0o777, (where / "picture").stat().st_mtime) == (0o644, 0)


def test_links_and_blocking_files_are_handled_as_by_copy(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("same\n")
    (tmp_path / "link").symlink_to("real")
    link = [{"path": str(tmp_path / "link"), "content": "same\n"}]
    assert [write(tmp_path, link)["changed"] for _time in range(2)] == [True, False]
    assert not (tmp_path / "link").is_symlink()
    (tmp_path / "file").write_text("")
    rejected = write(tmp_path, [{"path": str(tmp_path / "file"), "state": "directory"}])
    assert rejected["failed"]
    assert rejected["msg"].startswith(f"Cannot write '{tmp_path}/file': ")


def test_files_equal_those_of_template_and_copy(tmp_path: Path, desired_files: list[dict[str, Any]]) -> None:
    write(tmp_path, desired_files)
    where = str(tmp_path / "there")
    others = [
        {"name": "T", "ansible.builtin.template": {"src": "hue.j2", "dest": f"{where}/hue", "mode": "0644"}},
        {"name": "C", "ansible.builtin.copy": {"content": "one\ntwo\n", "dest": f"{where}/text*", "mode": "0600"}},
        {"name": "P", "ansible.builtin.copy": {"src": "picture", "dest": f"{where}/picture", "mode": "0644"}},
    ]
    assert [done["changed"] for done in results(tmp_path, others, color="blue")] == [False] * 3


def test_unchanged_files_need_one_request(tmp_path: Path, desired_files: list[dict[str, Any]]) -> None:
    write(tmp_path, desired_files)
    output = play(tmp_path, [task(desired_files)], "-vvv", color="blue").output
    assert MODULE.findall(output) == ["host_files_info"]
    assert len(re.findall("EXEC ", output)) == 1


def test_files_from_a_template_expression(tmp_path: Path) -> None:
    """Write the content unchanged, with any quotes and braces, as roles pass it."""
    files = (
        "{%- set found = [] -%}{%- for name in names -%}"
        "{%- set _ = found.append(dict(me, path=there ~ '//' ~ name, content=odd)) -%}"
        "{%- endfor -%}{{ found }}"
    )
    odd = 'it\'s "odd" \\n'
    write_loop = {"name": "Write", "openipu.pod.host_files": {"files": files}}
    given = {"there": f"{tmp_path}/./", "names": ["a", "b"], "odd": odd, "me": ME}
    (first,), (again,) = (results(tmp_path, [write_loop], **given) for _time in range(2))
    assert (first["files"]["created"], again["changed"]) == ([str(tmp_path / name) for name in "ab"], False)
    assert (tmp_path / "b").read_text() == odd


def test_a_path_is_listed_once(tmp_path: Path) -> None:
    files = [{"path": str(tmp_path / "a"), "content": "1"}, {"path": f"{tmp_path}//a", "content": "2"}]
    assert write(tmp_path, files)["msg"] == f"Cannot write '{tmp_path}/a' twice. Remove one entry from files."
    assert not (tmp_path / "a").exists()


def test_text_is_kept_and_data_are_written_as_json(tmp_path: Path) -> None:
    (tmp_path / "list.j2").write_text("[{{ 1 }}, 'a']\n")
    files = [
        {"path": str(tmp_path / "list"), "template": "list.j2"},
        {"path": str(tmp_path / "data"), "content": {"a": [True, None]}},
    ]
    write(tmp_path, files)
    assert (tmp_path / "list").read_text() == "[1, 'a']\n"
    assert (tmp_path / "data").read_text() == '{"a": [true, null]}'


def test_paths_are_reported_in_one_task(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("abc")
    (tmp_path / "link").symlink_to("file")
    paths = [str(tmp_path), str(tmp_path / "link"), str(tmp_path / "file" / "below"), str(tmp_path / "file")]
    query = {"name": "Gather information", "openipu.pod.host_files_info": {"paths": paths}}
    (reported,), (by_module,) = (results(tmp_path, [query], openipu_fast_path=fast) for fast in (True, False))
    assert (reported["changed"], reported["files"]) == (False, by_module["files"])
    assert [(item["path"], item["kind"]) for item in reported["files"]] == [
        (paths[0], "directory"),
        (paths[1], "link"),
        (paths[3], "file"),
    ]
    last = reported["files"][-1]
    assert {name: last[name] for name in ME} == ME
    assert (last["mode"], last["checksum"]) == ("0644", "a9993e364706816aba3e25717850c26c9cd0d89d")


def test_templates_may_use_other_braces(tmp_path: Path) -> None:
    (tmp_path / "rules.j2").write_text("{{ $labels.host }} is [[ color ]]\n")
    file = {"path": str(tmp_path / "rules"), "template": "rules.j2"}
    write(tmp_path, [file], variable_start_string="[[", variable_end_string="]]")
    assert (tmp_path / "rules").read_text() == "{{ $labels.host }} is blue\n"


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("the former secret\n")
    files = [
        {"path": str(tmp_path / "key"), "content": "the new secret\n", "secret": True},
        {"path": str(tmp_path / "open"), "content": "for all readers\n"},
    ]
    output = play(tmp_path, [task(files)], "--diff", "-v").output
    assert "for all readers" in output
    assert not re.search("the (former|new) secret", output)
    assert (tmp_path / "key").read_text() == "the new secret\n"


def test_invalid_content_is_not_written_and_ends_the_task(tmp_path: Path) -> None:
    (tmp_path / "second").write_text("as before\n")
    files = [
        {"path": str(tmp_path / "first"), "content": "1\n", "validate": "grep -q 1 %s"},
        {"path": str(tmp_path / "second"), "content": "2\n", "validate": "ls %s/sub"},
        {"path": str(tmp_path / "third"), "content": "3\n"},
    ]
    rejected = write(tmp_path, files)
    assert (rejected["failed"], rejected["files"]["created"]) == (True, [str(tmp_path / "first")])
    assert rejected["msg"].startswith(f"Cannot write '{tmp_path}/second': failed to validate: ls: cannot access ")
    assert rejected["msg"].endswith("Not a directory.")
    assert (tmp_path / "second").read_text() == "as before\n"
    assert not (tmp_path / "third").exists()


class Notified:
    """A task that notifies a handler, and the number of runs of the handler."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "restarts"
        self.log.touch()
        command = f"echo restarted >> {self.log}"
        self.handler = {"name": "Restart", "ansible.builtin.shell": command, "changed_when": True}

    def write(self, files: list[dict[str, Any]], *options: str) -> tuple[Played, int]:
        """Return the outcome of a play that writes the files, and how often it ran the handler."""
        before = len(self.restarts())
        played = play(self.folder, [{**task(files), "notify": "Restart"}], *options, handlers=[self.handler])
        return played, len(self.restarts()) - before

    def restarts(self) -> list[str]:
        return self.log.read_text().splitlines()


def test_handlers_run_after_a_failed_task(tmp_path: Path) -> None:
    """A failed task notifies no handler. The next one does, although its files need no change."""
    notified = Notified(tmp_path)
    good = {"path": str(tmp_path / "second"), "content": "before\n"}
    settings = [{"path": str(tmp_path / "first"), "content": "new\n"}]
    notified.write([good])
    failed, restarts = notified.write([*settings, {**good, "content": "bad\n", "validate": "false %s"}])
    assert (failed.failed, restarts, (tmp_path / "first").read_text()) == (1, 0, "new\n")

    predicted, restarts = notified.write([*settings, good], "--check")
    assert (predicted.changed, predicted.failed, restarts) == (1, 0, 0), "check mode predicts the change"
    for expected in (1, 0):
        repaired, restarts = notified.write([*settings, good])
        assert (repaired.failed, restarts) == (0, expected)


def test_a_rejected_file_alone_needs_no_handler(tmp_path: Path) -> None:
    notified = Notified(tmp_path)
    good = {"path": str(tmp_path / "first"), "content": "before\n"}
    more = {"path": str(tmp_path / "second"), "content": "before\n"}
    notified.write([good, more])
    failed, _restarts = notified.write(
        [{**good, "content": "bad\n", "validate": "false %s"}, {**more, "content": "new\n"}]
    )
    assert failed.failed == 1
    assert notified.write([good, more])[1] == 0


def test_marks_are_kept_until_a_task_removes_them(tmp_path: Path) -> None:
    """A run may end between the change and the restart, whatever ends it."""
    paths = [str(tmp_path / name) for name in ("changed", "equal")]
    files = [{"path": path, "content": "1\n"} for path in paths]
    write(tmp_path, files[1:])
    write(tmp_path, files, keep_marks=True)
    remove = {"name": "Remove", "openipu.pod.host_files": {"unmark": paths}}
    for _run in range(2):
        again = write(tmp_path, files, keep_marks=True)
        assert again["changed"]
        assert again["files"] == {"created": [], "updated": paths[:1], "unchanged": paths[1:]}
    removed, after = results(tmp_path, [remove, task(files, keep_marks=True)])
    assert [each["changed"] for each in (removed, after)] == [False, False]


def test_check_mode_keeps_the_marks(tmp_path: Path) -> None:
    path = str(tmp_path / "changed")
    files = [{"path": path, "content": "1\n"}]
    remove = {"name": "Remove", "openipu.pod.host_files": {"unmark": [path]}, "check_mode": True}
    tasks = [task(files, keep_marks=True), remove, task(files), task(files)]
    changes = [done["changed"] for done in results(tmp_path, tasks)]
    assert changes == [True, False, True, False], "a task without keep_marks removes the mark"


def test_files_can_be_marked_without_a_change(tmp_path: Path) -> None:
    """Mark a link that another task changes."""
    path = str(tmp_path / "unit")
    files = [{"path": path, "content": "1\n"}]
    mark = {"name": "Mark", "openipu.pod.host_files": {"mark": [path]}}
    tasks = [task(files), {**mark, "check_mode": True}, task(files), mark, task(files), task(files)]
    changes = [done["changed"] for done in results(tmp_path, tasks)]
    assert changes == [True, False, False, False, True, False]


def test_a_folder_for_marks_is_required(tmp_path: Path) -> None:
    (tmp_path / ".local").write_text("")
    rejected = write(tmp_path, [{"path": str(tmp_path / "first"), "content": "new\n"}])
    assert rejected["msg"].startswith("Cannot mark the files to write: mkdir: ")
    assert rejected["msg"].endswith("Nothing was written. Make the folder writable.")
    assert not (tmp_path / "first").exists()


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"path": "etc/a", "content": ""}, "Cannot write 'etc/a': the path is not absolute. Start it with '/'."),
    ({"path": "~/a", "content": ""}, "Cannot write '~/a': the path is not absolute."),
    ({"path": "/a"}, "Cannot write '/a': it has no source. Set exactly one of template, content and src."),
    (
        {"path": "/a", "src": "b", "content": "c"},
        "Cannot write '/a': content and src are set. Set exactly one of template, content and src.",
    ),
    (
        {"path": "/a", "state": "directory", "src": "b"},
        "Cannot create folder '/a': src is set, but a folder has no content. Remove src.",
    ),
    ({"path": "/a", "content": "", "mode": 420}, "Cannot write '/a': mode 420 is a number. Put it in quotes."),
    ({"path": "/a", "src": "nowhere"}, "Cannot prepare '/a': Could not find or access 'nowhere'"),
    ({"path": "/a", "template": "nowhere.j2"}, "Cannot prepare '/a': the template file nowhere.j2 could not be found"),
    ({"path": "/a", "template": "undefined.j2"}, "Cannot prepare '/a': 'nobody_knows' is undefined"),
    ({"path": "/a", "content": "", "size": 1}, "files[0]: unknown option 'size'. Choose from path, state, template,"),
]


def test_invalid_options_are_reported_in_one_message(tmp_path: Path) -> None:
    (tmp_path / "undefined.j2").write_text("{{ nobody_knows }}\n")
    messages = rejections(tmp_path, [task([file]) for file, _message in MISTAKES])
    assert [
        (expected, msg) for (_file, expected), msg in zip(MISTAKES, messages, strict=True) if expected not in msg
    ] == []
