# SPDX-License-Identifier: GPL-3.0-or-later
"""host_files as a task: it writes what Ansible's own modules write, and one question tells that nothing is to do."""

from __future__ import annotations

import grp
import os
import pwd
import re
from pathlib import Path
from typing import Any

import pytest
from playbook import play, refusals, results

ME = {"owner": pwd.getpwuid(os.geteuid()).pw_name, "group": grp.getgrgid(os.getegid()).gr_name}
MODULE = re.compile(r"Using module file \S+/(\w+)\.py")


def task(files: list[dict[str, Any]], **given: Any) -> dict[str, Any]:
    return {"name": "Write", "openipu.pod.host_files": {"files": files, **ME, **given}}


def write(folder: Path, files: list[dict[str, Any]], *options: str, **given: Any) -> dict[str, Any]:
    (done,) = results(folder, [task(files, **given)], *options, color="blue")
    return done


@pytest.fixture
def wanted(tmp_path: Path) -> list[dict[str, Any]]:
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


def test_all_are_made_once_and_only_what_differs_is_written_again(tmp_path: Path, wanted: list[dict[str, Any]]) -> None:
    where = tmp_path / "there"
    paths = [file["path"] for file in wanted]
    foretold, first, again = results(
        tmp_path, [{**task(wanted), "check_mode": True}, task(wanted), task(wanted)], color="blue"
    )
    assert foretold["files"]["created"] == paths
    assert (first["changed"], first["files"]["created"]) == (True, paths), "check mode made nothing"
    assert (again["changed"], again["files"]["unchanged"]) == (False, paths)
    assert (where / "hue").read_text() == "blue 1\nblue 2\n"
    assert (where / "picture").read_bytes() == bytes(range(256))
    assert [path.stat().st_mode & 0o7777 for path in (where, where / "hue", where / "text*")] == [0o750, 0o644, 0o600]

    (where / "text*").write_text("one\n2\n")
    (where / "hue").chmod(0o666)
    os.utime(where / "picture", (0, 0))
    for mended in results(tmp_path, [{**task(wanted), "check_mode": True}, task(wanted)], "--diff", color="blue"):
        assert mended["files"] == {"created": [], "updated": paths[1:3], "unchanged": [paths[0], paths[3]]}
        before_and_after = [(shown.get("before"), shown.get("after")) for shown in mended["diff"]]
        assert ("one\n2\n", "one\ntwo\n") in before_and_after
        modes = [pair for pair in before_and_after if isinstance(pair[0], dict)]
        assert {"mode": "0666", "path": paths[1]} in [before for before, _after in modes]
    assert ((where / "hue").stat().st_mode & 0o777, (where / "picture").stat().st_mtime) == (0o644, 0)


def test_a_link_and_a_folder_in_the_way_are_dealt_with_as_copy_does(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("same\n")
    (tmp_path / "link").symlink_to("real")
    link = [{"path": str(tmp_path / "link"), "content": "same\n"}]
    assert [write(tmp_path, link)["changed"] for _time in range(2)] == [True, False]
    assert not (tmp_path / "link").is_symlink()
    (tmp_path / "file").write_text("")
    refused = write(tmp_path, [{"path": str(tmp_path / "file"), "state": "directory"}])
    assert refused["failed"]
    assert refused["msg"].startswith(f"Cannot write {tmp_path}/file: ")


def test_it_writes_what_template_and_copy_write(tmp_path: Path, wanted: list[dict[str, Any]]) -> None:
    write(tmp_path, wanted)
    where = str(tmp_path / "there")
    others = [
        {"name": "T", "ansible.builtin.template": {"src": "hue.j2", "dest": f"{where}/hue", "mode": "0644"}},
        {"name": "C", "ansible.builtin.copy": {"content": "one\ntwo\n", "dest": f"{where}/text*", "mode": "0600"}},
        {"name": "P", "ansible.builtin.copy": {"src": "picture", "dest": f"{where}/picture", "mode": "0644"}},
    ]
    assert [done["changed"] for done in results(tmp_path, others, color="blue")] == [False] * 3


def test_one_question_tells_that_nothing_is_to_do(tmp_path: Path, wanted: list[dict[str, Any]]) -> None:
    write(tmp_path, wanted)
    output = play(tmp_path, [task(wanted)], "-vvv", color="blue").output
    assert MODULE.findall(output) == ["host_files_info"]
    assert len(re.findall("EXEC ", output)) == 1


def test_a_list_may_come_from_a_loop(tmp_path: Path) -> None:
    """As roles make theirs: what is in a file is what was given, whatever quotes and braces it has."""
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


def test_a_path_stands_once(tmp_path: Path) -> None:
    files = [{"path": str(tmp_path / "a"), "content": "1"}, {"path": f"{tmp_path}//a", "content": "2"}]
    assert write(tmp_path, files)["msg"] == f"{tmp_path}/a stands twice in files: leave one out."
    assert not (tmp_path / "a").exists()


def test_text_stays_text_and_data_become_json(tmp_path: Path) -> None:
    (tmp_path / "list.j2").write_text("[{{ 1 }}, 'a']\n")
    files = [
        {"path": str(tmp_path / "list"), "template": "list.j2"},
        {"path": str(tmp_path / "data"), "content": {"a": [True, None]}},
    ]
    write(tmp_path, files)
    assert (tmp_path / "list").read_text() == "[1, 'a']\n"
    assert (tmp_path / "data").read_text() == '{"a": [true, null]}'


def test_what_stands_at_paths_is_told_in_one_task(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("abc")
    (tmp_path / "link").symlink_to("file")
    paths = [str(tmp_path), str(tmp_path / "link"), str(tmp_path / "file" / "below"), str(tmp_path / "file")]
    asked = {"name": "Look", "openipu.pod.host_files_info": {"paths": paths}}
    (told,), (by_module,) = (results(tmp_path, [asked], openipu_fast_path=fast) for fast in (True, False))
    assert (told["changed"], told["files"]) == (False, by_module["files"])
    assert [(item["path"], item["kind"]) for item in told["files"]] == [
        (paths[0], "directory"),
        (paths[1], "link"),
        (paths[3], "file"),
    ]
    last = told["files"][-1]
    assert {name: last[name] for name in ME} == ME
    assert (last["mode"], last["checksum"]) == ("0644", "a9993e364706816aba3e25717850c26c9cd0d89d")


def test_other_braces_are_for_those_who_need_these(tmp_path: Path) -> None:
    (tmp_path / "rules.j2").write_text("{{ $labels.host }} is [[ color ]]\n")
    file = {"path": str(tmp_path / "rules"), "template": "rules.j2"}
    write(tmp_path, [file], variable_start_string="[[", variable_end_string="]]")
    assert (tmp_path / "rules").read_text() == "{{ $labels.host }} is blue\n"


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("the former secret\n")
    files = [
        {"path": str(tmp_path / "key"), "content": "the new secret\n", "secret": True},
        {"path": str(tmp_path / "open"), "content": "for everybody\n"},
    ]
    output = play(tmp_path, [task(files)], "--diff", "-v").output
    assert "for everybody" in output
    assert not re.search("the (former|new) secret", output)
    assert (tmp_path / "key").read_text() == "the new secret\n"


def test_what_does_not_pass_is_not_written_and_ends_the_task(tmp_path: Path) -> None:
    (tmp_path / "second").write_text("as before\n")
    files = [
        {"path": str(tmp_path / "first"), "content": "1\n", "validate": "grep -q 1 %s"},
        {"path": str(tmp_path / "second"), "content": "2\n", "validate": "ls %s/sub"},
        {"path": str(tmp_path / "third"), "content": "3\n"},
    ]
    refused = write(tmp_path, files)
    assert (refused["failed"], refused["files"]["created"]) == (True, [str(tmp_path / "first")])
    assert refused["msg"].startswith(f"Cannot write {tmp_path}/second: failed to validate: ls: cannot access ")
    assert refused["msg"].endswith("Not a directory.")
    assert (tmp_path / "second").read_text() == "as before\n"
    assert not (tmp_path / "third").exists()


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"path": "etc/a", "content": ""}, "'etc/a' is no absolute path: say where the file is to be."),
    ({"path": "~/a", "content": ""}, "'~/a' is no absolute path"),
    ({"path": "/a"}, "/a has nothing to be made of: give one of template, content and src."),
    ({"path": "/a", "src": "b", "content": "c"}, "/a has content and src: give one of template, content and src."),
    ({"path": "/a", "state": "directory", "src": "b"}, "/a is a folder, which has no src: leave that out."),
    ({"path": "/a", "content": "", "mode": 420}, "/a has mode 420, which is a number: put it in quotes."),
    ({"path": "/a", "src": "nowhere"}, "Cannot make /a: Could not find or access 'nowhere'"),
    ({"path": "/a", "template": "nowhere.j2"}, "Cannot make /a: the template file nowhere.j2 could not be found"),
    ({"path": "/a", "template": "undefined.j2"}, "Cannot make /a: 'nobody_knows' is undefined"),
    ({"path": "/a", "content": "", "size": 1}, "files.size. Supported parameters include: content,"),
]


def test_mistakes_are_told_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "undefined.j2").write_text("{{ nobody_knows }}\n")
    said = refusals(tmp_path, [task([file]) for file, _told in MISTAKES])
    assert [(told, msg) for (_file, told), msg in zip(MISTAKES, said, strict=True) if told not in msg] == []
