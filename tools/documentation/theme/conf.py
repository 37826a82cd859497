# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration of Sphinx for the documentation site."""

import hashlib
from pathlib import Path

from sphinx.application import Sphinx

from tools.documentation.pages import repository

project = "openipu.pod"
author = "openipu.pod contributors"
copyright = author
extensions = [
    "myst_parser",
    "sphinx_antsibull_ext",
    "tools.documentation.ansible_labels",
    "tools.documentation.code_breaks",
    "tools.documentation.diagrams",
]
exclude_patterns = ["plugins/collections.rst"]
nitpicky = True
smartquotes = False  # they would change the dashes of options

# Anchors of headings are those of code-hosting sites, so that links work on both.
myst_heading_anchors = 6
myst_fence_as_directive = ["mermaid"]
myst_links_external_new_tab = False

html_theme = "furo"
html_title = "openipu.pod"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["offline_search.js"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_last_updated_fmt = None
html_theme_options = {
    "sidebar_hide_name": False,
    "footer_icons": [{"name": "Repository", "url": repository(), "html": "Repository", "class": ""}],
    "light_css_variables": {"color-brand-primary": "#3f51b5", "color-brand-content": "#3f51b5"},
    "dark_css_variables": {"color-brand-primary": "#9fa8ff", "color-brand-content": "#9fa8ff"},
}
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
antsibull_ext_color_scheme = "none"
highlight_language = "text"


def setup(app: Sphinx) -> None:
    """Write all pages again when an extension of this project has changed. Sphinx detects only changes of pages."""
    content = b"".join(path.read_bytes() for path in sorted(Path(__file__).parents[1].glob("*.py")))
    app.add_config_value("site_extensions", hashlib.sha256(content).hexdigest(), "html", str)
