# SPDX-License-Identifier: GPL-3.0-or-later
"""Command lines ``vipu`` (users) and ``vipu-admin`` (administrators).

``user.main`` and ``admin.main`` are the programs. ``grammar.command`` declares a command of the form
``PROGRAM [flags] VERB NOUN [ID] [flags]``. ``session.Session`` has the controller, and prints results and errors.
``settings`` reads flags, environment variables and files.

Rules:

* Flags, output and exit statuses follow Graphcore's programs; scripts parse them. Do not change them.
* Import the client and the contracts inside functions, so that help and completion start without gRPC.
"""
