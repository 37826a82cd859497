# SPDX-License-Identifier: GPL-3.0-or-later
"""Pages of the programs, from their click commands."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from typing import NamedTuple

import click

from .markdown import page, paragraph, table

_LITERAL = "\b"
_OVERVIEW = "See [command lines](../command-lines.md) for configuration, output and examples."
_CONTROLLER = "See [controller and agent](../controller.md) for configuration and troubleshooting."
_OPERATOR = (
    "This page is for administrators. See [programs of the IPU operator](../kubernetes-operator.md) for its use."
)


class Program(NamedTuple):
    """A program with the place of its click command and an introduction for its page."""

    name: str
    module: str
    attribute: str
    reader: str


PROGRAMS = (
    Program("vipu", "openipu.vipu.cli.user", "vipu", f"This page is for users of IPUs. {_OVERVIEW}"),
    Program("vipu-admin", "openipu.vipu.cli.admin", "vipu_admin", f"This page is for administrators. {_OVERVIEW}"),
    Program("vipu-server", "openipu.vipu.server.main", "main", f"This page is for administrators. {_CONTROLLER}"),
    Program("virm-agent", "openipu.vipu.agent.main", "main", f"This page is for administrators. {_CONTROLLER}"),
    Program(
        "twin",
        "openipu.twin.cli.main",
        "main",
        "This page is for users of a twin. See [rack twin](../twin.md) for its parts, sizes and faults.",
    ),
    Program(
        "openipu-pod",
        "openipu.pod_files.cli.main",
        "main",
        "This page is for administrators. See [pod.yml and machines.csv](../pod-model.md) and"
        " [rehearsal](../../how-to/rehearsal.md).",
    ),
    Program("ipu-operator", "openipu.kubernetes.operator.main", "main", _OPERATOR),
    Program("gc-proxy", "openipu.kubernetes.proxy.main", "main", _OPERATOR),
    Program("gc-launcher", "openipu.kubernetes.launcher.main", "main", _OPERATOR),
)


def pages() -> dict[str, str]:
    """Return the page of each program, by its path in docs/reference."""
    return {f"commands/{program.name}.md": _page(program) for program in PROGRAMS}


def command(program: Program) -> click.Command:
    """Return the click command of a program."""
    found = getattr(importlib.import_module(program.module), program.attribute)
    if not isinstance(found, click.Command):
        raise TypeError(f"Cannot document {program.name}: {program.module}.{program.attribute} is no click command.")
    return found


def _page(program: Program) -> str:
    root = command(program)
    context = click.Context(root, info_name=program.name, **root.context_settings)
    leaves = list(_leaves(root, context)) if isinstance(root, click.Group) else []
    # Options of the program that its commands have too are listed once, at its top.
    common = {_key(parameter) for parameter in root.params} & {
        _key(parameter) for _, child, _ in leaves for parameter in child.params
    }
    parts = list(_described(root, context, set(), 2))
    for path, child, inner in leaves:
        parts += [f"## `{path}`", *_described(child, inner, common, 3)]
    introduction = f"{program.reader} `{program.name} --help` prints the same texts."
    return page(f"`{program.name}`", introduction, parts)


def _leaves(group: click.Group, context: click.Context) -> Iterator[tuple[str, click.Command, click.Context]]:
    for name in group.list_commands(context):
        child = group.get_command(context, name)
        if child is None or child.hidden:
            continue
        inner = click.Context(child, info_name=name, parent=context, **child.context_settings)
        if isinstance(child, click.Group):
            yield from _leaves(child, inner)
        else:
            yield inner.command_path, child, inner


def _described(each: click.Command, context: click.Context, common: set[tuple[str, ...]], level: int) -> Iterator[str]:
    usage = " ".join(each.collect_usage_pieces(context))
    yield _help(each.help or "")
    yield f"```text\n{context.command_path} {usage}\n```"
    rows = list(_options(each, context, common))
    if rows:
        yield f"{'#' * level} Options{_of(context)}"
        yield table(("Option", "Meaning", "Default", "Environment"), rows)
    shared = [f"`{parameter.opts[0]}`" for parameter in each.params if _key(parameter) in common]
    if shared:
        options = f"[options of `{context.find_root().info_name}`](#options)"
        every = len(shared) == len(common)
        yield paragraph(
            f"It also has the common {options}." if every else f"It also has {', '.join(shared)} of the {options}."
        )


def _help(text: str) -> str:
    """Return a help text. Blocks after the mark of click for literal text become code."""
    blocks = inspect.cleandoc(text.split("\f")[0]).split("\n\n")
    return "\n\n".join(_block(block) for block in blocks if block)


def _block(text: str) -> str:
    if not text.startswith(_LITERAL):
        return paragraph(text)
    return f"```text\n{text.removeprefix(_LITERAL).strip(chr(10))}\n```"


def _of(context: click.Context) -> str:
    path = context.command_path.split()[1:]
    return f" of `{' '.join(path)}`" if path else ""


def _key(parameter: click.Parameter) -> tuple[str, ...]:
    return tuple(sorted(parameter.opts))


def _options(
    each: click.Command, context: click.Context, common: set[tuple[str, ...]]
) -> Iterator[tuple[str, str, str, str]]:
    for parameter in each.get_params(context):
        if isinstance(parameter, click.Argument) or getattr(parameter, "hidden", False) or _key(parameter) in common:
            continue
        if not isinstance(parameter, click.Option) or "--help" in parameter.opts:
            continue
        names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
        metavar = "" if parameter.is_flag or parameter.count else f" `{parameter.make_metavar(context)}`"
        required = " Required." if parameter.required else ""
        yield names + metavar, (parameter.help or "") + required, _default(parameter), _variable(parameter, context)


def _default(parameter: click.Option) -> str:
    value = parameter.default
    # click marks an omitted default with a value of its own.
    if value is None or type(value).__name__ == "Sentinel" or callable(value) or value in ("", ()):
        return ""
    if parameter.is_flag:
        return parameter.opts[0] if value and parameter.secondary_opts else ""
    return f"`{value}`"


def _variable(parameter: click.Option, context: click.Context) -> str:
    if parameter.envvar:
        names = parameter.envvar if isinstance(parameter.envvar, str) else ", ".join(parameter.envvar)
        return f"`{names}`"
    prefix = context.auto_envvar_prefix
    if not prefix or not parameter.allow_from_autoenv or not parameter.name:
        return ""
    return f"`{prefix}_{parameter.name.upper()}`"
