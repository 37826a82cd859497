# SPDX-License-Identifier: GPL-3.0-or-later
"""V-IPU proxy: reserves partitions at V-IPU controllers for jobs and pods, and keeps track of them."""
