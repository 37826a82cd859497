# SPDX-License-Identifier: GPL-3.0-or-later
"""Program ``openipu-pod``: create, validate and rehearse pod.yml and machines.csv."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from openipu.pod_files import files, json_schema, warnings
from openipu.pod_files.first_pod import FirstPod
from openipu.process.failures import Program, program_error
from openipu.shared.pod.forms import NAME
from openipu.shared.pod.model import MACHINES_PER_RACK

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

_Command = TypeVar("_Command", bound=Callable[..., Any])

output_option = click.option(
    "-o", "--output", type=click.Choice(("text", "json")), default="text", show_default=True, help="Output format."
)
folder_argument = click.argument("folder", type=click.Path(path_type=Path, exists=True))


def _found(folder: Path) -> Path:
    try:
        return files.find(folder)
    except files.PodFilesError as error:
        raise program_error(error) from None


@click.group(cls=Program, context_settings=_CONTEXT)
@click.version_option(package_name="openipu", prog_name="openipu-pod", message="%(prog)s %(version)s")
def main() -> None:
    """Create, validate and rehearse the description of a POD: pod.yml and machines.csv."""


@main.command()
@folder_argument
@output_option
@click.pass_context
def validate(context: click.Context, folder: Path, output: str) -> None:
    """Validate the POD of FOLDER, a folder or a pod.yml.

    Print all mistakes as FILE:LINE:COLUMN: MESSAGE. The exit status is 1 if there are any.

    Warnings are unknown models of switches and PDUs, bonds with links to several switches, and MAC addresses of
    examples. For group_vars and host_vars, they are files of unknown groups and hosts, mistyped names of variables,
    and values that roles or modules would reject. Files there that Ansible cannot read are mistakes.
    """
    path = _found(folder)
    pod, mistakes = files.read(path)
    found = warnings.of_variables(path.parent) if pod is None else warnings.warnings(pod)
    if output == "json":
        places = {"mistakes": mistakes, "warnings": found}
        plain = {name: [each.as_json() for each in listed] for name, listed in places.items()}
        click.echo(json.dumps({"valid": pod is not None, **plain}, indent=2))
    else:
        for text in (*(each.text for each in mistakes), *(each.warning for each in found)):
            click.echo(text)
        counted = f" {files.count(len(found), 'warning')}." if found else ""
        if pod is None:
            click.echo(f"{files.count(len(mistakes), 'mistake')}.{counted}", err=True)
        else:
            click.echo(f"{path} is valid: {files.contents(pod)}.{counted}")
    context.exit(0 if pod is not None else 1)


def _name(context: click.Context, parameter: click.Parameter, value: str) -> str:
    if not NAME.accepts(value):
        raise click.BadParameter(f"{value!r}: use {NAME.rule}.", context, parameter)
    return value


class _Number(click.IntRange):
    """Number in a range."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number. Raises BadParameter."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is not a number from {self.min} to {self.max}.", param, ctx)


class _PerRack(click.ParamType[Any]):
    """One number for all racks, or a list with a number for each rack."""

    name = "number,…"

    def __init__(self, lowest: int, highest: int) -> None:
        self._number = _Number(lowest, highest)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """Return the numbers. Raises BadParameter."""
        if isinstance(value, tuple):
            return value  # converted before, as click requires
        numbers = str(value).split(",")
        if not all(map(str.strip, numbers)):
            self.fail(f"{value!r}: a number is missing: write one number, or a list such as 16,8.", param, ctx)
        return tuple(self._number.convert(each, param, ctx) for each in numbers)


class _Racks(click.Option):
    """Number of racks. The default is the length of the longest list of another option."""

    def get_default(self, ctx: click.Context, call: bool = True) -> Any:
        """Return the default. Click processes the options of the command line first."""
        lengths = [len(value) for value in ctx.params.values() if isinstance(value, tuple)]
        return max(lengths) if lengths else super().get_default(ctx, call)


def _each_rack(option: str, numbers: tuple[int, ...], racks: int) -> tuple[int, ...]:
    """Return the number of each rack. Raises BadParameter."""
    if len(numbers) not in (1, racks):
        given = ",".join(map(str, numbers))
        remedy = f"set --racks {len(numbers)}" if racks == 1 else f"one for each of the {racks} racks"
        raise click.BadParameter(f"{given!r}: give one number, or {remedy}.", param_hint=option)
    if not any(numbers):
        raise click.BadParameter("the controller needs a server: set at least one.", param_hint=option)
    return numbers if len(numbers) == racks else numbers * racks


def _asked(*names: str, **settings: Any) -> Callable[[_Command], _Command]:
    """Return an option that is asked for at a terminal, and has its default elsewhere."""
    prompt = settings["help"].partition(".")[0] if sys.stdin.isatty() else False
    return click.option(*names, show_default=True, prompt=prompt, **settings)


@main.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@_asked("--name", default="pod1", callback=_name, help="Name of the POD.")
@_asked(
    "--racks",
    cls=_Racks,
    default=1,
    type=_Number(1, 64),
    help="Number of racks. Omit to use the length of a list in --machines or --servers.",
)
@_asked("--machines", default="16", type=_PerRack(1, MACHINES_PER_RACK), help="IPU-Machines per rack.")
@_asked("--servers", default="4", type=_PerRack(0, 4), help="Servers per rack.")
def init(folder: Path, name: str, racks: int, machines: tuple[int, ...], servers: tuple[int, ...]) -> None:
    """Write a first pod.yml and machines.csv into FOLDER.

    At a terminal, the command asks for missing options. For racks of different sizes, give --machines and
    --servers one number for each rack, as in --machines 16,8. Then replace the MAC addresses and adapt the files.

    The command also writes an ansible.cfg, unless there is one: in FOLDER as current folder, Ansible fails on mistakes
    in pod.yml.
    """
    try:
        size = (_each_rack("--machines", machines, racks), _each_rack("--servers", servers, racks))
        paths = FirstPod(name, *size).write(folder)
    except files.PodFilesError as error:
        raise program_error(error) from None
    click.echo(f"Wrote {', '.join(map(str, paths))}.")
    click.echo(f"Replace the MAC addresses in machines.csv, then run: openipu-pod validate {folder}")


@main.command()
@folder_argument
@click.option(
    "--state-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".twin"),
    show_default=True,
    envvar="TWIN_STATE_DIR",
    help="State folder of the twin.",
)
@click.option("--fault", "faults", multiple=True, help="Fault before the run, as for 'twin fault'. May be repeated.")
@click.option("--keep", is_flag=True, help="Keep the twin running, for 'twin fault' and a further rehearsal.")
@output_option
@click.pass_context
def rehearse(
    context: click.Context, folder: Path, state_dir: Path, faults: tuple[str, ...], keep: bool, output: str
) -> None:
    """Rehearse site.yml on a twin of the POD of FOLDER.

    Translate all addresses to loopback, start the twin of exactly these racks, and run site.yml against it, first in
    check mode and then for real. Report what will happen on the real POD. No real device is contacted. The exit
    status is 1 when the run fails.
    """
    from openipu.pod_files.rehearsal import command

    context.exit(command.run(_found(folder), state_dir, faults, keep, output))


@main.command()
def schema() -> None:
    """Print the JSON Schema of pod.yml, for editors.

    \b
    openipu-pod schema > pod.schema.json
    Then write this as the first line of pod.yml:
    # yaml-language-server: $schema=pod.schema.json
    """
    click.echo(json.dumps(json_schema.pod(), indent=2))


if __name__ == "__main__":
    main()
