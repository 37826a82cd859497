# SPDX-License-Identifier: GPL-3.0-or-later
"""The import of this package fails with one message where playwright is missing."""
