# SPDX-License-Identifier: GPL-3.0-or-later
"""Views of operators, read-only."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from openipu.dashboard.access import Operator
from openipu.dashboard.ownership import Object, Vpod
from openipu.dashboard.panels import cloud, tables
from openipu.dashboard.panels.views import ReportView, TablesView

INDEX = "horizon:admin:ipus:index"


class IndexView(TablesView):
    """vPODs, allocations and partitions of all projects."""

    table_classes = (tables.AllVpodsTable, tables.AllPartitionsTable)

    @cached_property
    def _access(self) -> Operator:
        return cloud.operator(self.request)

    def access(self) -> Operator:
        """Return the access of the operator, which reads each object once per request."""
        return self._access

    def get_vpods_data(self) -> list[Vpod]:
        """Return the vPODs of all projects."""
        return self.rows(lambda: self._access.vpods())

    def get_partitions_data(self) -> list[Object]:
        """Return the partitions of all projects."""
        return self.rows(lambda: list(self._access.objects.partitions))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Return the content of the page."""
        context: dict[str, Any] = super().get_context_data(**kwargs)
        context["report_url"] = reverse("horizon:admin:ipus:report")
        return context


class RackReportView(ReportView):
    """Rack report of all machines."""

    index = INDEX

    def report(self, request: HttpRequest) -> str:
        """Return the page."""
        return cloud.operator(request).report()
