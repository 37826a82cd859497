# SPDX-License-Identifier: GPL-3.0-or-later
"""Generated pages of the reference: ``python -m tools.reference`` writes them, ``--check`` compares them.

The pages are in the repository, so that code-hosting sites show them. Their sources are the click commands, the
contracts in ``proto/``, the OpenAPI description of the V-IPU proxy, and the alert rules.
"""
