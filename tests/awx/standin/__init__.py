# SPDX-License-Identifier: GPL-3.0-or-later
"""Stand-in of the parts of the API of AWX 24.6.1 that the role awx_content uses.

Tests cannot install an AWX server from a package index, so this server replaces it. It stores objects, runs no jobs,
and rejects what AWX rejects. The docstrings of the modules and ``docs/how-to/awx.md`` name the source of the answers.
"""
