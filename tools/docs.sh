#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Check the documentation of all plugins and build it as a site in docs/build/html.
set -eu
cd "$(dirname "$0")/.."
collections=$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
export ANSIBLE_COLLECTIONS_PATH="$collections"

antsibull-docs lint-collection-docs --plugin-docs --skip-rstcheck --validate-collection-refs=self .

rm -rf docs/build
mkdir -p docs/build/rst docs/build/html
# The output of the builders is long: it is printed only on failure.
log=docs/build/log
if ! antsibull-docs collection --use-current --squash-hierarchy --fail-on-error --dest-dir docs/build/rst openipu.pod >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
fi
cat >docs/build/rst/conf.py <<'CONF'
project = "openipu.pod"
copyright = "openipu.pod contributors"
extensions = ["sphinx_antsibull_ext"]
html_theme = "sphinx_ansible_theme"
highlight_language = "YAML+Jinja"
CONF
if ! sphinx-build -q -n -b html docs/build/rst docs/build/html >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
fi
cp docs/reference/pod.schema.json docs/build/html/
python tools/links.py
echo "Documentation built: docs/build/html/index.html"
