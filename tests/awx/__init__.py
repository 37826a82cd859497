# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the role awx_content with the modules of awx.awx and a stand-in of AWX's API."""
