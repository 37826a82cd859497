# SPDX-License-Identifier: GPL-3.0-or-later
"""Pages of antsibull-docs, adapted to the theme of the site."""

from __future__ import annotations

from tools.documentation.plugins import adapt

PAGE = """Openipu.Pod
===========

.. contents::
   :local:
   :depth: 1

Synopsis
--------

.. seealso::

   `openipu.pod.vipu <vipu_module.html>`__
"""


def test_a_page_has_no_list_of_its_contents() -> None:
    page = adapt(PAGE)
    assert page.startswith("openipu.pod\n===========\n\nSynopsis\n")
    assert page.endswith(PAGE[PAGE.index("Synopsis") :])
