# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the tables of docs/reference/metrics.md from the catalog; with --check, only report stale tables."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from openipu.vipu.metrics import catalog

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "metrics.md"
TABLES = {"controller": catalog.CONTROLLER, "machine": catalog.MACHINE, "process": catalog.PROCESS}
_TABLE = re.compile(r"(<!-- metrics: (\w+) -->\n).*?(<!-- end -->\n)", re.DOTALL)


def updated(page: str) -> str:
    """Return the page with current tables."""
    return _TABLE.sub(lambda match: f"{match[1]}\n{catalog.table(TABLES[match[2]].values())}\n{match[3]}", page)


def main() -> int:
    """Write the page, or only check it; return the exit status."""
    before = PAGE.read_text()
    after = updated(before)
    if before == after:
        return 0
    if "--check" in sys.argv[1:]:
        print(f"{PAGE.name} is stale: run python tools/metrics.py.", file=sys.stderr)
        return 1
    PAGE.write_text(after)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
