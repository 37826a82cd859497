# SPDX-License-Identifier: GPL-3.0-or-later
"""The program ``vipu-server``: options, commands and the process.

``main.Server`` connects the parts: storage, lifecycle, API and metrics. ``commands`` has the maintenance commands
(backup, restore, certificates, health). ``metrics`` reads the records at each scrape.

Rules:

* The parts must not import this package.
* The server starts its record writer first and stops it last, so that accepted changes are written.
* ``main``, ``options`` and ``commands`` import parts of the controller in functions. So ``health`` starts quickly.
* Options have environment variables (``VIPU_SERVER_<OPTION>``); both are an interface.
"""
