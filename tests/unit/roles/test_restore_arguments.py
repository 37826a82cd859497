# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands with which the role vipu_server restores backups: partitions lose their records only on request."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from ansible.plugins.filter.core import regex_replace, to_bool
from ansible.plugins.test.core import search
from jinja2.nativetypes import NativeEnvironment

from openipu.vipu.storage.etcd.mirror import Content, DamagedError
from openipu.vipu.storage.etcd.store import check_version
from openipu.vipu.storage.interface import StoreError
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


def unusable(stderr: str) -> bool:
    """Return whether the role takes the records for unusable after a failed check."""
    template = yaml.safe_load((ROLE / "vars/main.yml").read_text())["vipu_server_unusable_records"]
    environment = NativeEnvironment()
    environment.filters["regex_replace"] = regex_replace
    environment.tests["search"] = search
    rendered: bool = environment.from_string(template).render(vipu_server_found={"rc": 1, "stderr": stderr})
    return rendered


def fault(content: Content) -> StoreError:
    with pytest.raises(StoreError) as raised:
        check_version(content)
    return raised.value


NEWER = Content(meta={"version": 99})


@pytest.mark.parametrize(
    "error", [DamagedError("Records are missing."), fault(Content()), fault(NEWER)], ids=["damaged", "none", "newer"]
)
def test_records_that_cannot_be_backed_up(error: StoreError) -> None:
    message = f"Error {error.error_code}: {error}"
    assert unusable(message)
    assert unusable(message.replace(" ", "\n  "))


@pytest.mark.parametrize(
    "stderr",
    [
        "",
        "Error OPU612: Cannot use the store 'etcd://h:1/x/': no node responds (timeout). Check the addresses.",
        "Error OPU612: Cannot use the store 'etcd://h:1/damaged/': etcd: authentication failed.",
        "Error OPU619: Cannot read '/ca.crt': No such file or directory",
    ],
)
def test_a_failed_check_does_not_show_that_records_are_unusable(stderr: str) -> None:
    assert not unusable(stderr)
