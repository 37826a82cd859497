# SPDX-License-Identifier: GPL-3.0-or-later
"""Program ``openipu-pod``: create, validate and rehearse pod.yml and machines.csv."""

from __future__ import annotations

import json
from pathlib import Path

import click

from openipu.pod_files import files, json_schema
from openipu.process.failures import program_error

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

output_option = click.option(
    "-o", "--output", type=click.Choice(("text", "json")), default="text", show_default=True, help="Output format."
)
folder_argument = click.argument("folder", type=click.Path(path_type=Path, exists=True))


def _found(folder: Path) -> Path:
    try:
        return files.find(folder)
    except files.PodFilesError as error:
        raise program_error(error) from None


@click.group(context_settings=_CONTEXT)
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
    """
    path = _found(folder)
    pod, mistakes = files.read(path)
    if output == "json":
        click.echo(json.dumps({"valid": pod is not None, "mistakes": [each.as_json() for each in mistakes]}, indent=2))
    elif pod is not None:
        click.echo(f"{path} is valid: {files.contents(pod)}.")
    else:
        for mistake in mistakes:
            click.echo(mistake.text)
        click.echo(f"{len(mistakes)} mistake{'' if len(mistakes) == 1 else 's'}.", err=True)
    context.exit(0 if pod is not None else 1)


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
