# SPDX-License-Identifier: GPL-3.0-or-later
"""Plugin of pytest that counts the tests of a session for the record.

``tests/conftest.py`` registers it. Each session appends one JSON line to the file named by
``SUITE_REPORT``: passed, failed, skipped with reasons, and whether a filter was set.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Append the counts of the session. Workers of xdist append nothing: their controller counts their tests."""
    file = os.environ.get("SUITE_REPORT")
    if not file or hasattr(terminalreporter.config, "workerinput"):
        return
    stats, option = terminalreporter.stats, terminalreporter.config.option
    skipped = [str(report.longrepr[2]) for report in stats.get("skipped", []) if isinstance(report.longrepr, tuple)]
    counts = {
        "passed": len(stats.get("passed", [])),
        "failed": len(stats.get("failed", [])) + len(stats.get("error", [])),
        "skipped": skipped,
        "deselected": len(stats.get("deselected", [])),
        "filter": " ".join(filter(None, [option.keyword, option.markexpr])),
    }
    with Path(file).open("a") as lines:
        lines.write(json.dumps(counts) + "\n")
