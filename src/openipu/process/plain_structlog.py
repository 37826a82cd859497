# SPDX-License-Identifier: GPL-3.0-or-later
"""Import of structlog without rich, which structlog imports for its own tracebacks when it is installed.

Logs have plain tracebacks (``log.configure``), so rich would only delay the start of programs. Programs import
structlog from here, before any other module that imports it. Later imports of rich work as usual.
"""

from __future__ import annotations

import sys

_blocked = "structlog" not in sys.modules and "rich" not in sys.modules
if _blocked:
    sys.modules["rich"] = None  # type: ignore[assignment]  # its imports raise ImportError
try:
    import structlog
finally:
    if _blocked:
        del sys.modules["rich"]

__all__ = ["structlog"]
