# SPDX-License-Identifier: GPL-3.0-or-later
"""Pages of antsibull-docs, adapted to the theme of the site."""

from __future__ import annotations

from tools.documentation.code_breaks import with_breaks
from tools.documentation.plugins import adapt
from tools.reference.markdown import table

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


def test_long_names_in_code_can_wrap_after_punctuation() -> None:
    page = '<p>monitoring_address <span class="pre">monitoring_web_ca</span> <span class="pre">a_b</span></p>'
    assert with_breaks(page) == page.replace(">monitoring_web_ca<", ">monitoring_<wbr>web_<wbr>ca<")
    assert with_breaks("<h1>openipu.pod.pdu module</h1>") == "<h1>openipu.<wbr>pod.<wbr>pdu module</h1>"
    assert with_breaks('<a href="#a">ListAllocationsReply</a>') == ('<a href="#a">List<wbr>Allocations<wbr>Reply</a>')
    assert with_breaks('<span class="pre">--api-host</span>') == '<span class="pre option">--api-host</span>'
    assert with_breaks('<span class="pre">team-a</span>') == '<span class="pre">team-a</span>'
    assert with_breaks('<span class="pre">webhooks.certManager</span>').count("<wbr>") == 2
    assert with_breaks('<span class="pre">&lt;name&gt;_ipuof.conf</span>') == (
        '<span class="pre">&lt;name&gt;_ipuof.<wbr>conf</span>'
    )


def test_numbers_in_tables_stay_on_one_line_with_their_unit() -> None:
    cell = "<td><p>7.4 s (6.4 s CPU), one rack 0.3 %, 36 % of a core, 4 partitions</p></td>"
    joined = "<td><p>7.4&#160;s (6.4&#160;s CPU), one rack 0.3&#160;%, 36&#160;% of a core, 4 partitions</p></td>"
    assert with_breaks(cell) == joined
    assert with_breaks("<pre>sleep 4 s</pre>") == "<pre>sleep 4 s</pre>"


def test_a_table_has_no_empty_columns() -> None:
    rows = [("--force", "", "remove | all"), ("--wait", "", "")]
    assert table(("Option", "Default", "Meaning"), rows).splitlines() == [
        "| Option | Meaning |",
        "| --- | --- |",
        "| --force | remove \\| all |",
        "| --wait |  |",
    ]
    assert table(("Option",), []) == ""
