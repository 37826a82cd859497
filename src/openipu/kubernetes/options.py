# SPDX-License-Identifier: GPL-3.0-or-later
"""Options that the programs share."""

from __future__ import annotations

import click

from openipu.process import log

KUBECONFIG = click.option(
    "--kubeconfig", default="", help="Client configuration for the API server. Omit to use that of the pod."
)
LOG_FORMAT = click.option(
    "--log-format", type=click.Choice(["text", "json"]), default="text", help="Format of the log."
)
LOG_LEVEL = click.option(
    "--log-level", type=click.Choice(log.LEVELS), default="info", help="Lowest level of logged events."
)
