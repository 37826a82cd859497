# SPDX-License-Identifier: GPL-3.0-or-later
"""Static analysis of playbooks: variables, modules and roles.

Plays, tasks and files of variables are followed through imports and includes with constant names. In roles,
``meta/argument_specs.yml`` has the required variables, and the tests of each role check its own templates.
"""

from __future__ import annotations

import contextlib
import importlib
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from ansible.playbook.task import Task
from jinja2 import TemplateSyntaxError

from tests import ROOT
from tests.unit.collection.awx.expressions import (
    Names,
    asserted,
    expression_names,
    names,
    only_variable,
    value_names,
)

_KEYWORDS = {*Task.fattributes, "include_tasks", "block", "rescue", "always"}
_CONDITIONS = ("when", "failed_when", "changed_when", "until")
_LISTS = ("pre_tasks", "tasks", "post_tasks", "handlers")
_MAGIC = {"groups", "hostvars", "inventory_dir", "inventory_file", "omit", "playbook_dir", "role_path", "vars", "item"}
_OWN = "openipu.pod."


@dataclass
class Playbook:
    """Findings in a playbook and everything that it imports."""

    used: set[str] = field(default_factory=set)
    # Variables that must be defined, the task, and the variables whose definition is a condition of their use.
    required: list[tuple[str, str, frozenset[str]]] = field(default_factory=list)
    defined: set[str] = field(default_factory=set)
    templates: dict[str, set[str]] = field(default_factory=dict)  # required variables of other variables
    options: dict[str, list[tuple[str, dict[str, Any]]]] = field(default_factory=dict)  # by variable, with the owner
    allowed: dict[str, set[Any]] = field(default_factory=dict)  # by variable, from assertions
    shown: set[str] = field(default_factory=set)  # variables in messages and results
    modules: set[str] = field(default_factory=set)
    stats: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)  # environment variables in templates
    truths: set[str] = field(default_factory=set)  # variables that are conditions without the filter bool
    become: bool = False
    ssh: bool = False
    run_once: bool = False

    def missing(self) -> dict[str, str]:
        """Return the required variables that the playbook does not define, each with a task that uses it."""
        found: dict[str, str] = {}
        required, seen = deque(self.required), set()
        while required:
            name, place, guards = required.popleft()
            if (name, guards) in seen or name in guards:
                continue
            seen.add((name, guards))
            # A variable with a template requires the variables of the template.
            required.extend((each, place, guards) for each in self.templates.get(name, ()))
            if name not in self.defined | _MAGIC and not name.startswith(("ansible_", "inventory_hostname")):
                found.setdefault(name, place)
        return found

    def environment(self) -> set[str]:
        """Return the environment variables from which the modules take omitted options."""
        found = set(self.read)
        for module in self.modules:
            for option in argument_spec(module).values():
                found.update(option["fallback"][1] if "fallback" in option else ())
        return found


@cache
def argument_spec(module: str) -> dict[str, Any]:
    """Return the argument spec of a module of this collection; empty for other modules."""
    if not module.startswith(_OWN):
        return {}
    name = module.removeprefix(_OWN)
    action = importlib.import_module(f"ansible_collections.openipu.pod.plugins.action.{name}").ActionModule
    return getattr(action, "task", action).argument_spec  # type: ignore[no-any-return]


@cache
def analyse(path: Path) -> Playbook:
    """Return the findings in a playbook."""
    playbook = Playbook()
    _Scan(playbook).playbook(path)
    return playbook


class _Scan:
    def __init__(self, found: Playbook) -> None:
        self.found = found
        self.roles: set[tuple[str, str]] = set()

    def playbook(self, path: Path, given: Iterable[str] = ()) -> None:
        self.found.defined.update(given)
        for play in yaml.safe_load(path.read_text()):
            file = play.get("ansible.builtin.import_playbook")
            if file:
                self._use(value_names(play.get("vars")), path.name, set())
                self.playbook(path.parent / file, play.get("vars") or ())
            else:
                self._play(play, path)

    def _play(self, play: dict[str, Any], path: Path) -> None:
        place = f"{path.name}: {play['name']}"
        remote = play.get("connection") != "local"
        self.found.ssh |= remote
        self.found.become |= remote and bool(play.get("become"))
        for file in play.get("vars_files", []):
            variables = yaml.safe_load((path.parent / file).read_text())
            self.found.defined.update(variables)
            self._variables(variables)
        self._variables(play.get("vars") or {})
        self._use(value_names([play["hosts"], play.get("module_defaults"), play.get("environment")]), place, set())
        for role in play.get("roles", []):
            self._role(role if isinstance(role, str) else role["role"], "main")
        for kind in _LISTS:
            self._tasks(play.get(kind, []), path, set())

    def _tasks(self, tasks: list[dict[str, Any]], path: Path, guards: set[str]) -> None:
        for task in tasks:
            self._task(task, path, guards)

    def _task(self, task: dict[str, Any], path: Path, guards: set[str]) -> None:
        place = f"{path.name}: {task.get('name', '?')}"
        guards = guards | set().union(*(expression_names(each).tested for each in _list(task.get("when"))))
        own = {key: value for key, value in task.items() if key not in ("block", "rescue", "always")}
        if not any(key.endswith("assert") for key in task):
            guards = guards | value_names(own).tested
        self.found.ssh |= _connects(task)
        self.found.run_once |= _runs_once(task)
        self._variables(task.get("vars") or {})
        for key in _CONDITIONS:
            for each in _list(task.get(key)):
                self._use(expression_names(each), place, guards)
        control = task.get("loop_control") or {}
        self.found.defined.update(control[key] for key in ("loop_var", "index_var") if key in control)
        if "register" in task:
            self.found.defined.add(task["register"])
        rest = {key: task[key] for key in ("loop", "environment", "delegate_to", "module_defaults") if key in task}
        self._use(value_names([rest, control]), place, guards)
        for part in ("block", "rescue", "always"):
            self._tasks(task.get(part, []), path, guards)
        for module in task:
            if module not in _KEYWORDS and not module.startswith("with_"):
                self._module(module, task, path, guards, place)

    def _module(self, module: str, task: dict[str, Any], path: Path, guards: set[str], place: str) -> None:
        options = task[module] if isinstance(task[module], dict) else {"_": task[module]}
        self.found.modules.add(module)
        name = module.removeprefix("ansible.builtin.")
        if name in ("include_tasks", "import_tasks"):
            file = options.get("file", options.get("_"))
            self._tasks(yaml.safe_load((path.parent / file).read_text()), path.parent / file, guards)
        elif name in ("include_role", "import_role"):
            self._role(options["name"], options.get("tasks_from", "main"), task.get("vars") or ())
        elif name == "assert":
            self._assertion(options, task, place)
        elif name in ("set_fact", "set_stats"):
            values = options if name == "set_fact" else options["data"]
            self.found.defined.update(values if name == "set_fact" else ())
        self._results(name, options)
        self._use(value_names({key: value for key, value in options.items() if key != "that"}), place, guards)
        for option, spec in argument_spec(module).items():
            variable = only_variable(options.get(option))
            if variable:
                self.found.options.setdefault(variable, []).append((f"{module}.{option}", spec))

    def _results(self, module: str, options: dict[str, Any]) -> None:
        """Add the results of a job, and the variables in its output."""
        self.found.stats.update(options["data"] if module == "set_stats" else ())
        if module in ("debug", "set_stats", "fail"):
            self.found.shown |= value_names(options).used

    def _assertion(self, options: dict[str, Any], task: dict[str, Any], place: str) -> None:
        for condition in _list(options["that"]):
            condition_names = expression_names(condition)
            self.found.allowed.update(condition_names.allowed)
            self._use(condition_names, place, set())
            names_in_loop = task["loop"] if condition == "item in vars" else ()
            self.found.used.update(names_in_loop)
            for name in (*asserted(condition), *names_in_loop):
                self.found.required.append((name, place, frozenset()))

    def _variables(self, variables: dict[str, Any]) -> None:
        """Add variables with their templates, which Ansible evaluates at their use."""
        self.found.defined.update(variables)
        for name, value in variables.items():
            found = value_names(value)
            self.found.used |= found.used
            self.found.truths |= found.truths
            self.found.templates.setdefault(name, set()).update(found.required - {name})

    def _use(self, found: Names, place: str, guards: set[str]) -> None:
        self.found.used |= found.used
        self.found.truths |= found.truths
        for name in sorted(found.required - guards):
            self.found.required.append((name, place, frozenset(guards)))

    def _role(self, name: str, entry: str, given: Iterable[str] = ()) -> None:
        entry = entry.removesuffix(".yml")
        if (name, entry) in self.roles or not name.startswith(_OWN):
            return
        self.roles.add((name, entry))
        folder = ROOT / "roles" / name.removeprefix(_OWN)
        specs = yaml.safe_load((folder / "meta/argument_specs.yml").read_text())["argument_specs"]
        for variable, spec in specs[entry]["options"].items() if entry in specs else ():
            self.found.used.add(variable)
            self.found.options.setdefault(variable, []).append((f"role {name}", spec))
            if spec.get("required") and variable not in given:
                self.found.required.append((variable, f"role {name}", frozenset()))
        for dependency in (yaml.safe_load((folder / "meta/main.yml").read_text()) or {}).get("dependencies", []):
            self._role(dependency if isinstance(dependency, str) else dependency["role"], "main")
        for kind in ("defaults", "vars"):
            for file in folder.glob(f"{kind}/**/*.yml"):
                self._inside(yaml.safe_load(file.read_text()))
        for file in folder.glob("templates/**/*.j2"):
            # Others have their own delimiters, such as dashboards.
            with contextlib.suppress(TemplateSyntaxError):
                self.found.used |= names(file.read_text()).used
        self._role_tasks(folder / "tasks" / f"{entry}.yml", set())
        for file in folder.glob("handlers/*.yml"):
            self._role_tasks(file, set())

    def _role_tasks(self, path: Path, seen: set[Path]) -> None:
        if path in seen or not path.exists():
            return
        seen.add(path)
        for task in _flat(yaml.safe_load(path.read_text()) or []):
            self._inside(task)
            self.found.ssh |= _connects(task)
            # Roles prepare files on the control node, which every slice of a job has.
            self.found.run_once |= _runs_once(task) and task.get("delegate_to") != "localhost"
            asserted_conditions = _list(task.get("ansible.builtin.assert", {}).get("that"))
            for each in [*(each for key in _CONDITIONS for each in _list(task.get(key))), *asserted_conditions]:
                found = expression_names(each)
                self.found.used |= found.used
                self.found.truths |= found.truths
                if each in asserted_conditions:
                    self.found.allowed.update(found.allowed)
            for module in task:
                if module in _KEYWORDS or module.startswith("with_"):
                    continue
                self.found.modules.add(module)
                options = task[module] if isinstance(task[module], dict) else {"file": task[module]}
                name = module.removeprefix("ansible.builtin.")
                self._results(name, options)
                if name in ("include_tasks", "import_tasks") and "{{" not in str(options["file"]):
                    self._role_tasks(path.parent / options["file"], seen)
                elif name in ("include_role", "import_role") and "{{" not in options["name"]:
                    self._role(options["name"], options.get("tasks_from", "main"), task.get("vars") or ())

    def _inside(self, value: Any) -> None:
        found = value_names(value)
        self.found.used |= found.used
        self.found.truths |= found.truths
        self.found.read |= found.environment


def _runs_once(task: dict[str, Any]) -> bool:
    """Return whether a task runs on one host only. Tasks that print do not matter."""
    return bool(task.get("run_once")) and "ansible.builtin.debug" not in task


def _connects(task: dict[str, Any]) -> bool:
    """Return whether a task or block is delegated to a host other than the control node, with its own connection."""
    return task.get("delegate_to", "localhost") != "localhost" and task.get("connection", "local") != "local"


def _flat(tasks: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for task in tasks:
        yield task
        for part in ("block", "rescue", "always"):
            yield from _flat(task.get(part, []))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]
