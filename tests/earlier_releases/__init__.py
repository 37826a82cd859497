# SPDX-License-Identifier: GPL-3.0-or-later
"""State that earlier code of the controller wrote: ``database.sql`` and ``etcd.json``.

``make.py`` writes both with the code of a commit: ``python -m tests.earlier_releases.make COMMIT``. ``code.py`` exports
the code of the commit that added them.
"""
