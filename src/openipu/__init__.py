# SPDX-License-Identifier: GPL-3.0-or-later
"""An open V-IPU control plane for Graphcore IPU-PODs, and a rack twin to rehearse with.

``vipu`` has the controller, the agents and the command lines, ``twin`` the rack twin, and ``process`` code
of all services.

``openipu.shared`` is private. Programs need the contracts, the client and the POD model, which are part of the
collection. An import of ``ansible_collections.openipu.pod`` could load another installed release. So in a checkout,
``shared`` is a link to ``plugins/module_utils``; a wheel contains a copy. Code of both must be in ``module_utils``,
and not in a package of its own. ``ansible-test sanity`` imports modules without third-party packages, and this
project has no ignore entries.
"""
