# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the tables of docs/metrics.md from the catalog of metrics; with --check only tell whether they are stale."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from openipu.vipu.metrics import catalog

PAGE = Path(__file__).parent.parent / "docs" / "metrics.md"
TABLES = {"controller": catalog.CONTROLLER, "machine": catalog.MACHINE, "process": catalog.PROCESS}
_PLACE = re.compile(r"(<!-- metrics: (\w+) -->\n).*?(<!-- end -->\n)", re.DOTALL)


def written(page: str) -> str:
    """A page with its tables as they should be."""
    return _PLACE.sub(lambda match: f"{match[1]}\n{catalog.table(TABLES[match[2]].values())}\n{match[3]}", page)


def main() -> int:
    """0 when the page is as it should be, or was made so."""
    before = PAGE.read_text()
    after = written(before)
    if before == after:
        return 0
    if "--check" in sys.argv[1:]:
        print(f"{PAGE.name} is stale: run python tools/metrics.py.", file=sys.stderr)
        return 1
    PAGE.write_text(after)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
