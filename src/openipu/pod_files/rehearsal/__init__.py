# SPDX-License-Identifier: GPL-3.0-or-later
"""Rehearsal of ``site.yml`` on the twin of a user's POD.

``rehearse`` is the entry point:

* ``translation`` maps addresses to loopback and back.
* ``inventory`` writes the files of the twin.
* ``playbook`` runs ``site.yml``.
* ``report`` has the result in names and addresses of the user.
* ``plugins`` has a callback plugin of Ansible.
* ``command`` runs a rehearsal in a network namespace of its own, with a relay to a twin that runs on.
* ``guard`` has a module that every Python process of a rehearsal loads. It rejects and records other connections.
"""
