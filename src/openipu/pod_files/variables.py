# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables of Ansible beside a pod.yml: which they are, which are undefined, and which have mistyped names."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import yaml

from openipu.shared.pod.inventory_names import is_pod_file
from openipu.shared.pod.mistakes import PodError, similar, unknown
from openipu.shared.pod.source import NO_MAPPING, Line, check_syntax_and_size
from openipu.shared.text_syntax import TEMPLATE

FOLDERS = ("group_vars", "host_vars")
SUFFIXES = ("", ".yml", ".yaml", ".json")  # of files of variables
VAULT_FILE = "vault.yml"  # of the documentation
_ENCRYPTED = "$ANSIBLE_VAULT"
_VAULT_NAME = re.compile(r"\bvault_\w+")
# A line up to its comment. A quotation mark without its partner is a character.
_CODE = re.compile(r"""(?:(?:"(?:\\.|[^"\\])*"|'[^']*'|[^\s#])#*|\s(?!#))*""")
_TOP_KEY = re.compile(r"^[\"']?(?P<name>\w+)[\"']?\s*:", re.MULTILINE)
# Settings of the playbooks for a POD. Users mistype them, and the playbooks then skip devices or use defaults.
SETTINGS = (
    *("cabling_strict", "eos_config", "eos_connection"),
    *("pdu_breaker_share", "pdu_config", "pdu_connection", "pdu_device_power", "pdu_display", "pdu_redundant"),
    *("pod_check_agents", "pod_check_reach", "pod_cluster_test", "pod_cluster_tests", "pod_cluster_test_timeout"),
    *("pod_report_controller", "pod_report_dest", "vipu_allocations", "vipu_connection", "vipu_partition_connection"),
    *("vipu_python", "vipu_users_folder", "vipu_wait_timeout"),
)
PREFIXES = ("cabling_", "eos_", "pdu_")  # of names that only the playbooks use: SETTINGS has all of them
_NULL = ("", "~", "null", "Null", "NULL")  # forms of YAML
_IN_VARIABLES = {  # messages that differ from those for pod.yml
    TEMPLATE: 'is not YAML: the template has no quotes: write "{{ … }}"',
    NO_MAPPING: "is not a mapping: write NAME: VALUE",
}
_CLOSE = 0.9  # similarity from which a name of any form is a mistyped one; roles have settings that are less similar
_CLOSE_WITH_PREFIX = 0.87  # the same for names with a prefix; users' own variables are less similar


@dataclass(frozen=True)
class Variables:
    """Variables of a user's inventory: their files with text, and undefined ones such as secrets with first place."""

    files: Mapping[Path, str]  # relative path -> text
    encrypted: tuple[Path, ...]
    undefined: Mapping[str, str]  # name -> file:line
    unneeded: tuple[str, ...] = ()  # undefined variables that only the twin needs
    vault: str = ""  # text of a vault that is not encrypted yet
    pods: tuple[str, ...] = ()  # text of each pod.yml, which may use variables in options such as ``compose``
    lacking: Mapping[str, Sequence[str]] = field(default_factory=dict)  # credentials -> names of devices without them

    def with_undefined(self, names: Iterable[str], unneeded: Iterable[str]) -> Variables:
        """Return the variables with further undefined ones."""
        found = {name: place for name in names if (place := self._place(name))}
        return replace(self, undefined=dict(self.undefined) | found, unneeded=tuple(unneeded))

    def _place(self, name: str) -> str | None:
        """Return file and line of the first use of a variable, None if no file uses it."""
        uses = re.compile(rf"\b{re.escape(name)}\b")
        places = (f"{path}:{number}" for path, text in self.files.items() for number in _lines_with(uses, text))
        return next(places, None)

    def similar(self, name: str) -> str | None:
        """Return the most similar name of a variable that the files set, None if none is similar."""
        return similar(name, {key for text in self._texts.values() for key in _TOP_KEY.findall(text)} - {name})

    def invalid(self, folder: Path) -> Iterator[PodError]:
        """Yield a mistake for each file that is not a mapping in YAML. Its file is relative to that of pod.yml."""
        for path in (path for path, text in self._texts.items() if not _is_valid(text)):
            try:
                check_syntax_and_size(str(folder / path))
            except PodError as error:
                yield PodError(str(path), error.line, _IN_VARIABLES.get(error.message, error.message))

    def mistyped(self, of_roles: Collection[str] = ()) -> Iterator[PodError]:
        """Yield a warning for each variable that no file and no playbook uses and that is similar to a known one.

        Known are the settings of the playbooks, undefined variables and ``of_roles``.
        A name with a prefix of the playbooks may be less similar. The file of a warning is relative to that of pod.yml.
        """
        used = {
            name
            for text in (*self.files.values(), *self.pods)
            for names in _lines_with(re.compile(r"\w+"), _TOP_KEY.sub("", text)).values()
            for name in names
        }
        known = (*SETTINGS, *self.undefined, *of_roles)
        for path, text in self._texts.items():
            for found in _TOP_KEY.finditer(text):
                name = found["name"]
                if name in used or name in known:
                    continue
                prefix = next((each for each in PREFIXES if name.startswith(each)), None)
                expected = [each for each in SETTINGS if prefix and each.startswith(prefix)] or known
                if difflib.get_close_matches(name, expected, 1, _CLOSE_WITH_PREFIX if prefix else _CLOSE):
                    line = Line(text.count("\n", 0, found.start()) + 1, 1)
                    yield PodError(str(path), line, unknown("variable", name, expected))

    @property
    def _texts(self) -> dict[Path, str]:
        return {**self.files, **({Path(VAULT_FILE): self.vault} if self.vault else {})}


def read(folder: Path) -> Variables:
    """Return the variables beside a pod.yml. Raises OSError."""
    files: dict[Path, str] = {}
    encrypted: list[Path] = []
    for path in sorted(each for name in FOLDERS for each in (folder / name).rglob("*") if each.is_file()):
        if path.suffix not in SUFFIXES:
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        if text.startswith(_ENCRYPTED):
            encrypted.append(path.relative_to(folder))
        else:
            files[path.relative_to(folder)] = text
    pods = tuple(path.read_text("utf-8", "replace") for path in sorted(folder.iterdir()) if is_pod_file(path.name))
    found = Variables(files, tuple(encrypted), {}, vault=_vault(folder / VAULT_FILE), pods=pods)
    uses = [name for text in files.values() for names in _lines_with(_VAULT_NAME, text).values() for name in names]
    set_names = {name for text in files.values() for name in _TOP_KEY.findall(text)}
    return found.with_undefined((name for name in dict.fromkeys(uses) if name not in set_names), ())


def _is_valid(text: str) -> bool:
    """Return whether a text is a mapping in YAML, or empty. JSON with tabs is one, and comments are empty."""
    if "\N{REPLACEMENT CHARACTER}" in text:  # not UTF-8
        return False
    try:
        nodes = [each for each in yaml.parse(text, yaml.SafeLoader) if isinstance(each, yaml.NodeEvent)]
    except yaml.YAMLError:
        return False
    return not nodes or isinstance(nodes[0], yaml.MappingStartEvent) or getattr(nodes[0], "value", None) in _NULL


def _vault(path: Path) -> str:
    """Return the text of a file with secrets, empty if it does not exist or is encrypted. Raises OSError."""
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    return "" if text.startswith(_ENCRYPTED) else text


def _lines_with(pattern: re.Pattern[str], text: str) -> dict[int, list[str]]:
    """Return the matches of a pattern in a YAML text, without its comments, by the number of the line."""
    lines = enumerate(text.splitlines(), 1)
    code = ((number, part[0]) for number, line in lines if (part := _CODE.match(line)))
    return {number: found for number, line in code if (found := pattern.findall(line))}
