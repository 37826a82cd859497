# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses of the panel of tenants."""

from __future__ import annotations

from django.urls import path

from openipu.dashboard.panels.project import views

urlpatterns = [
    path("", views.IndexView.as_view(), name="index"),
    path("order/", views.OrderView.as_view(), name="order"),
    path("report/", views.TenantReportView.as_view(), name="report"),
]
