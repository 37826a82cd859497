# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of Horizon. Those of one cloud are in the JSON file that the environment variable names.

Without the variable, they suffice to collect the static files, which all clouds share.
"""

import json
import os
import sys
from pathlib import Path

DEBUG = False
TIME_ZONE = "UTC"
# One process serves all requests.
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
# Files that never change while Horizon runs, made once at its installation.
STATIC_ROOT = str(Path(sys.prefix) / "static")
COMPRESS_OFFLINE = True
SECRET_KEY = "collects static files only"  # noqa: S105 - those of clouds are random

if "OPENIPU_DASHBOARD" in os.environ:
    globals().update(json.loads(Path(os.environ["OPENIPU_DASHBOARD"]).read_text()))
