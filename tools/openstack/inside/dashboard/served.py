# SPDX-License-Identifier: GPL-3.0-or-later
"""WSGI service of Horizon with its static files, which a web server serves elsewhere."""

from django.conf import settings
from openstack_dashboard.wsgi import application as horizon
from whitenoise import WhiteNoise

application = WhiteNoise(horizon, root=settings.STATIC_ROOT, prefix=settings.STATIC_URL)
