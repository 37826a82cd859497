# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands with which the role vipu_server restores backups: partitions lose their records only on request."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import yaml
from ansible.plugins.filter.core import to_bool
from jinja2.nativetypes import NativeEnvironment

from tests import ROOT

ROLE = ROOT / "roles/vipu_server"


def commands(tasks: list[dict[str, Any]]) -> list[str]:
    """Return the templates of all restore commands."""
    found = []
    for task in tasks:
        found += commands([*task.get("block", []), *task.get("rescue", []), *task.get("always", [])])
        argv = task.get("ansible.builtin.command", {}).get("argv", "")
        if "'restore'" in argv:
            found.append(argv)
    return found


def argv(file: str, **settings: bool | str) -> list[str]:
    (template,) = commands(yaml.safe_load((ROLE / "tasks" / file).read_text()))
    defaults = yaml.safe_load((ROLE / "defaults/main.yml").read_text())
    variables = {
        **{name: value for name, value in defaults.items() if name.startswith("vipu_server_restore_")},
        "vipu_server_as_user": [],
        "vipu_server_program": "vipu-server",
        "vipu_server_previous_program": "vipu-server",
        "vipu_server_archive": "backup",
        "vipu_server_upgrade_backup": "backup",
        "vipu_server_external_certificates": False,
        "vipu_server_secure": True,
        "vipu_server_authority": SimpleNamespace(rc=0),
    }
    environment = NativeEnvironment()
    environment.filters["bool"] = to_bool
    rendered: list[str] = environment.from_string(template).render({**variables, **settings})
    return rendered


def test_partitions_lose_their_records_only_on_request() -> None:
    assert "--yes" not in argv("restore.yml", vipu_server_restore_overwrite=True)
    assert "--yes" in argv("restore.yml", vipu_server_restore_overwrite=True, vipu_server_restore_lose_partitions=True)


def test_options_given_as_text_are_not_requests() -> None:
    """Extra variables such as ``-e vipu_server_restore_overwrite=false`` are text, as are the answers of a survey."""
    options = {"vipu_server_restore_overwrite": "false", "vipu_server_restore_lose_partitions": "false"}
    assert argv("restore.yml", **options) == ["vipu-server", "restore", "backup"]
    options = dict.fromkeys(options, "true")
    assert {"--overwrite", "--yes"} <= set(argv("restore.yml", **options))


def test_a_rollback_never_asks() -> None:
    """The previous release may be unable to read the records of the new one, and would ask."""
    assert "--yes" in argv("rollback.yml")


def test_existing_records_are_replaced_only_on_request() -> None:
    assert argv("restore.yml") == ["vipu-server", "restore", "backup"]
    assert "--overwrite" in argv("restore.yml", vipu_server_restore_overwrite=True)
