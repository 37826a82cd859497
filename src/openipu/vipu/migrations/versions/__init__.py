# SPDX-License-Identifier: GPL-3.0-or-later
"""One module per version of the database; never change one that was released."""
