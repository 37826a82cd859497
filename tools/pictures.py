# SPDX-License-Identifier: GPL-3.0-or-later
"""Pictures of the README, drawn from a run of the twin: ``make pictures``.

The run is in a network namespace of its own, so it needs no free addresses and reaches no other host. It writes
``docs/pictures/session.svg``, a terminal in which the lines appear at the pace of the run, and
``docs/pictures/rack-report.svg``, the rack of its report.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import click
from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
_INSIDE = "OPENIPU_PICTURES"
_COLUMNS = 104
_PACE = 0.12  # seconds between two lines of an output
_LONGEST = 3.0  # seconds that the picture waits for a command; longer ones are shortened
# Commands of the recording, each with the number of its last lines that the picture shows.
_SESSION = (
    ("twin up", 2),
    ("ansible-playbook playbooks/site.yml -i inventory/twin/pod.yml", 3),
    ("vipu list partitions", 6),
    ("twin fault unplug ag03:7", 3),
    ("vipu-admin test cluster cl0 --cabling", 12),
)
_TEMPLATE = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="Terminal: bring up the \
twin of a rack, list its partitions, pull a cable and find it with a test">
<style>
.{unique_id}-matrix {{ font: {char_height}px "DejaVu Sans Mono", Menlo, Consolas, monospace; }}
@keyframes appear {{ from {{ opacity: 0 }} to {{ opacity: 1 }} }}
{styles}
ANIMATION
@media print {{ text {{ animation: none !important; }} }}
@media (prefers-reduced-motion: reduce) {{ text {{ animation: none !important; }} }}
</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}</defs>
<rect width="{width}" height="{height}" rx="8" fill="#12141c"/>
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}<g class="{unique_id}-matrix">
{matrix}
</g></g>
</svg>
"""


class Shown(NamedTuple):
    """One line of the terminal, and the second at which it appears."""

    text: Text
    second: float


def record(state: Path) -> list[Shown]:
    """Run the commands, and return the lines of the terminal."""
    lines: list[Shown] = []
    clock = 0.0
    for command, kept in _SESSION:
        click.echo(f"$ {command}")
        lines.append(Shown(Text.assemble(("$ ", "bold green"), (command, "bold")), clock))
        start = time.monotonic()
        output = run(command, state)
        clock += min(_LONGEST, max(0.4, time.monotonic() - start))
        # The last line of twin up names the folders of this run.
        shown = [line for line in output.rstrip().splitlines() if line.strip() and str(state) not in line]
        if len(shown) > kept:
            shown = ["…", *shown[-kept:]]
        for line in shown:
            lines.append(Shown(_coloured(line), clock))
            clock += _PACE
        lines.append(Shown(Text(""), clock))
        clock += 0.8
    return lines


def run(command: str, state: Path) -> str:
    """Run a command in the checkout, and return its output. Tests of cables fail on purpose."""
    variables = os.environ | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "TWIN_STATE_DIR": str(state / "twin"),
        "VIPU_CLI_API_HOST": "127.3.1.101",
        "HOME": str(state),
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_NOCOLOR": "1",
        "COLUMNS": str(_COLUMNS),
    }
    done = subprocess.run(  # noqa: S603
        shlex.split(command),
        cwd=ROOT,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode and "test cluster" not in command:
        raise click.ClickException(f"{command} failed:\n{done.stdout}")
    return done.stdout


def _coloured(line: str) -> Text:
    text = Text(line[:_COLUMNS])
    text.highlight_regex(r"\b(ACTIVE|passed|ok=\d+)\b", "green")
    text.highlight_regex(r"\b(FAILED|failed|ERROR)\b(?!=0)", "bold red")
    return text


def terminal(lines: list[Shown]) -> str:
    """Return the picture of a terminal."""
    console = Console(record=True, width=_COLUMNS, file=open(os.devnull, "w"), force_terminal=True)  # noqa: PTH123, SIM115
    for line in lines:
        console.print(line.text, no_wrap=True, overflow="crop")
    svg = console.export_svg(code_format=_TEMPLATE, unique_id="terminal")
    rules = (
        f'text[clip-path="url(#terminal-line-{number})"] {{ animation: appear .1s {line.second:.2f}s both; }}'
        for number, line in enumerate(lines)
    )
    return svg.replace("ANIMATION", "\n".join(rules))


def rack(page: str) -> str:
    """Return the drawing of the first rack of a report as a picture of its own."""
    style = _one(r"<style>(.*?)</style>", page)
    shapes = _one(r"<svg width=\"0\"[^>]*>(.*?)</svg>", page)
    drawing = _one(r"(<svg viewBox=\"0 0 \d+ \d+\" role=\"group\".*?</svg>)", page)
    start, _, rest = drawing.partition(">")
    head = start.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
    size = re.findall(r"[\d.]+", _one(r"viewBox=\"([^\"]*)\"", start))
    paper = f'<rect width="{size[2]}" height="{size[3]}" rx="8" style="fill: var(--paper)"/>'
    svg = f"{head}><style><![CDATA[{style}]]></style>{shapes}{paper}{rest}\n"
    ElementTree.fromstring(svg)  # noqa: S314  a picture of our own; raises ParseError when it is not valid XML
    return svg


def _one(pattern: str, text: str) -> str:
    found = re.search(pattern, text, re.DOTALL)
    if not found:
        raise click.ClickException(f"Cannot draw the rack: the report has no {pattern!r}.")
    return found[1]


def draw() -> None:
    """Run the session and write both pictures."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True, timeout=20)  # noqa: S607
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        state, report = Path(folder), Path(folder) / "rack-report.html"
        try:
            lines = record(state)
            playbook = "ansible-playbook playbooks/rack_report.yml -i inventory/twin/pod.yml"
            run(f"{playbook} -e pod_report_dest={report}", state)
            (PICTURES / "session.svg").write_text(terminal(lines))
            (PICTURES / "rack-report.svg").write_text(rack(report.read_text()))
        finally:
            run("twin down", state)


@click.command()
def main() -> None:
    """Draw the pictures of the README from a run of the twin."""
    if os.environ.get(_INSIDE):
        draw()
        return
    command = ["unshare", "--user", "--map-root-user", "--net", sys.executable, "-m", "tools.pictures"]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | {_INSIDE: "1"}, check=False)  # noqa: S603
    raise SystemExit(done.returncode)


if __name__ == "__main__":
    main()
