# SPDX-License-Identifier: GPL-3.0-or-later
"""Build of the documentation site in docs/build/html: ``python -m tools.documentation``.

``pages`` collects the Markdown pages of the repository. ``plugins`` generates the reference of the collection with
antsibull-docs. Sphinx builds the site with the configuration in ``theme/conf.py``; ``diagrams`` renders Mermaid.
The site needs no network: all scripts, diagrams and the search index are in its folder.
"""
