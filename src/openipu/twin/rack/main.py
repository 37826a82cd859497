# SPDX-License-Identifier: GPL-3.0-or-later
"""Program that runs a rack twin: the agents of its IPU-Machines and its devices, in one process.

``python -m openipu.twin.rack.main --config FILE --socket PATH`` runs until SIGTERM or SIGINT.
``openipu.twin.rack.config_file`` describes the configuration file. Every agent has its own endpoint;
all of them listen before the control socket does.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

import openipu.shared.vipu.quiet_grpc  # noqa: F401  before all modules that import gRPC
from openipu.process import log
from openipu.process.arguments import Command
from openipu.process.failures import program_error
from openipu.process.plain_structlog import structlog
from openipu.process.signals import stop_signal
from openipu.twin.rack.config_file import load
from openipu.twin.rack.control import ControlServer
from openipu.vipu.tls.load import TlsError

_log: structlog.stdlib.BoundLogger = structlog.get_logger("twin")


async def _run(path: Path, socket: Path) -> None:
    rack = load(path)
    await rack.start()
    control = ControlServer(rack, socket)
    try:
        await control.start()
        _log.info("rack is up", machines=len(rack.machines), devices=bool(rack.devices), control=str(socket))
        await stop_signal()
    finally:
        await control.stop()
        await rack.stop()


@click.command(cls=Command, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--config", required=True, type=click.Path(path_type=Path), help="Configuration file of the rack, JSON.")
@click.option("--socket", required=True, type=click.Path(path_type=Path), help="Socket file of the run-time control.")
def main(config: Path, socket: Path) -> None:
    """Run the IPU-Machines and devices of a rack twin until SIGTERM or SIGINT."""
    log.configure("text", "info")
    try:
        asyncio.run(_run(config, socket))
    except (OSError, ValueError, TlsError) as error:
        raise program_error(error) from None


if __name__ == "__main__":
    main()
