# SPDX-License-Identifier: GPL-3.0-or-later
"""Helpers of service processes: logs, limits, notification, background processes, network namespaces.

Services call ``log.configure`` before they start, and report errors to users with ``failures.program_error``. This
package imports neither ``vipu`` nor ``twin``.
"""
