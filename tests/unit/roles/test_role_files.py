# SPDX-License-Identifier: GPL-3.0-or-later
"""Files, templates, roles and handlers that tasks of roles and playbooks name exist."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import ROOT

ROLES = ROOT / "roles"
PLAYBOOKS = ROOT / "playbooks"
INCLUDES = ("include_tasks", "import_tasks")
NAMES = sorted(path.name for path in ROLES.iterdir() if (path / "tasks").is_dir())


class Loader(yaml.SafeLoader):
    """Loader that reads ``!unsafe`` and ``!vault`` values as text."""


Loader.add_multi_constructor("!", lambda loader, suffix, node: loader.construct_scalar(node))


def tasks(entries: Any) -> Iterator[dict[str, Any]]:
    """Yield all tasks of a list, also those in blocks."""
    for entry in entries or ():
        yield entry
        for part in ("block", "rescue", "always"):
            yield from tasks(entry.get(part))


def of_role(role: str, folder: str = "tasks") -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield file and task for all tasks or handlers of a role."""
    for path in sorted((ROLES / role / folder).glob("**/*.yml")):
        for task in tasks(yaml.load(path.read_text(), Loader)):
            yield path, task


def arguments(task: dict[str, Any], *modules: str) -> Any:
    """Return the arguments of a task of one of these modules of Ansible; None for other tasks."""
    found = (task.get(f"{prefix}{module}") for module in modules for prefix in ("ansible.builtin.", ""))
    return next((value for value in found if value is not None), None)


@pytest.mark.parametrize("role", NAMES)
def test_included_files_exist(role: str) -> None:
    missing = []
    for path, task in of_role(role):
        included = arguments(task, *INCLUDES)
        name = included.get("file") if isinstance(included, dict) else included
        if (
            name
            and "{{" not in name
            and not (path.parent / name).exists()
            and not (ROLES / role / "tasks" / name).exists()
        ):
            missing.append(f"{path.relative_to(ROLES)}: {name}")
    assert not missing


def entries(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield key and value of all mappings in a value, at any depth; keys without the prefix of a collection."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield str(key).rpartition(".")[2], item
            yield from entries(item)
    elif isinstance(value, list):
        for item in value:
            yield from entries(item)


def literal(name: Any) -> bool:
    """Return whether a name is text without expressions."""
    return isinstance(name, str) and "{{" not in name


def sources(role: str) -> Iterator[tuple[Path, Path]]:
    """Yield the task file and the path of each template or file that the tasks of a role name."""
    for path in sorted((ROLES / role / "tasks").glob("**/*.yml")):
        for key, value in entries(yaml.load(path.read_text(), Loader)):
            if key == "template" and literal(value):
                yield path, ROLES / role / "templates" / value
            elif key in ("template", "copy") and isinstance(value, dict) and literal(value.get("src")):
                if key == "template" or not (value.get("remote_src") or value["src"].startswith("/")):
                    yield path, ROLES / role / {"template": "templates", "copy": "files"}[key] / value["src"]
            elif key == "files" and isinstance(value, list):
                for file in value:
                    if isinstance(file, dict) and literal(file.get("src")):
                        yield path, ROLES / role / "files" / file["src"]


def references(path: Path) -> Iterator[Path]:
    """Yield the files and folders that a playbook or its task file names."""
    content = yaml.load(path.read_text(), Loader)
    for play in content if isinstance(content, list) else ():
        for item in play.get("roles", ()):
            yield ROLES / (item["role"] if isinstance(item, dict) else item).rpartition(".")[2]
    for key, value in entries(content):
        if key == "import_playbook" and literal(value):
            yield path.parent / value
        elif key in INCLUDES:
            name = value.get("file") if isinstance(value, dict) else value
            if literal(name):
                yield path.parent / name
        elif key in ("include_role", "import_role") and literal(value["name"]):
            role = ROLES / value["name"].rpartition(".")[2]
            yield role
            if literal(value.get("tasks_from")):
                yield role / "tasks" / f"{value['tasks_from'].removesuffix('.yml')}.yml"


@pytest.mark.parametrize("role", NAMES)
def test_templates_and_files_exist(role: str) -> None:
    assert [(path.name, str(source)) for path, source in sources(role) if not source.exists()] == []


@pytest.mark.parametrize("path", sorted(PLAYBOOKS.glob("**/*.yml")), ids=lambda path: path.name)
def test_names_in_playbooks_exist(path: Path) -> None:
    assert [str(name) for name in references(path) if not name.exists()] == []


@pytest.mark.parametrize("role", NAMES)
def test_notified_handlers_exist(role: str) -> None:
    known = set()
    for _, handler in of_role(role, "handlers"):
        listens = handler.get("listen", [])
        known |= {handler.get("name"), *([listens] if isinstance(listens, str) else listens)}
    missing = []
    for path, task in of_role(role):
        notified = task.get("notify") or []
        for name in [notified] if isinstance(notified, str) else notified:
            if "{{" not in name and name not in known:
                missing.append(f"{path.relative_to(ROLES)}: {name}")
    assert not missing


def test_patterns_match_existing_tasks() -> None:
    """Guard against patterns that no task matches any more."""
    all_tasks = [task for role in NAMES for _, task in of_role(role)]
    assert sum(arguments(task, *INCLUDES) is not None for task in all_tasks) > 50
    assert sum("notify" in task for task in all_tasks) > 20
    assert sum(1 for role in NAMES for _ in sources(role)) > 35
    assert sum(1 for path in PLAYBOOKS.glob("**/*.yml") for _ in references(path)) > 33


CONDITIONS = ("that", "when", "failed_when", "changed_when", "until")


def conditions(content: Any) -> Iterator[Any]:
    """Yield all conditions in the content of a file of tasks."""
    if isinstance(content, dict):
        for key, value in content.items():
            if key in CONDITIONS:
                yield from value if isinstance(value, list) else [value]
            yield from conditions(value)
    elif isinstance(content, list):
        for each in content:
            yield from conditions(each)


@pytest.mark.parametrize("folder", ["roles", "playbooks", "extensions"])
def test_conditions_are_text(folder: str) -> None:
    """A colon and a blank in an unquoted condition make it a mapping, which fails only when Ansible evaluates it."""
    broken = []
    for path in sorted((ROOT / folder).rglob("*.yml")):
        for document in yaml.load_all(path.read_text(), Loader):
            broken += [f"{path}: {each}" for each in conditions(document) if not isinstance(each, str | bool)]
    assert not broken
