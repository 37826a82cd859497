# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses of the panel of operators."""

from __future__ import annotations

from django.urls import path

from openipu.dashboard.panels.admin import views

urlpatterns = [
    path("", views.IndexView.as_view(), name="index"),
    path("report/", views.RackReportView.as_view(), name="report"),
]
