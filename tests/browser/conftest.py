# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the runs of tests are that reports are made of."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "unit/report"))
