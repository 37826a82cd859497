# SPDX-License-Identifier: GPL-3.0-or-later
"""Program ``openipu-pod``: create, validate and rehearse ``pod.yml`` and ``machines.csv``.

``cli.main`` has the commands. ``files`` finds and validates the files of a folder, ``json_schema`` describes
``pod.yml`` to editors, and ``first_pod`` writes the files of a new user. The POD model
itself is ``openipu.shared.pod``.
"""
