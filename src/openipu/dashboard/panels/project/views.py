# SPDX-License-Identifier: GPL-3.0-or-later
"""Views of tenants."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse, reverse_lazy
from horizon import forms

from openipu.dashboard.access import Tenant
from openipu.dashboard.orders import Order
from openipu.dashboard.ownership import Object, Vpod
from openipu.dashboard.panels import tables
from openipu.dashboard.panels.cloud import tenant
from openipu.dashboard.panels.project.forms import OrderForm
from openipu.dashboard.panels.views import ReportView, TablesView, redirected
from openipu.shared.reconcile import UserError

INDEX = "horizon:project:ipus:index"


class IndexView(TablesView):
    """vPODs, partitions and orders of the project."""

    table_classes = (tables.VpodsTable, tables.PartitionsTable, tables.OrdersTable)

    def access(self) -> Tenant:
        """Return the access of the user to the project."""
        return tenant(self.request)

    def get_vpods_data(self) -> list[Vpod]:
        """Return the vPODs."""
        return self.rows(lambda: tenant(self.request).vpods())

    def get_partitions_data(self) -> list[Object]:
        """Return the partitions."""
        return self.rows(lambda: list(tenant(self.request).objects.partitions))

    def get_orders_data(self) -> list[Order]:
        """Return the orders. A user who may not order has none."""
        return self.rows(lambda: tenant(self.request).listed_orders() if tenant(self.request).may_order else [])

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Return the content of the page, with the address of the form or the reason for which ordering is off."""
        context: dict[str, Any] = super().get_context_data(**kwargs)
        context["report_url"] = reverse("horizon:project:ipus:report")
        access = tenant(self.request)
        context["ipus"] = next(iter(self.rows(lambda: [access.ipu_usage])), None)
        if access.may_order:
            context["order_url"] = reverse("horizon:project:ipus:order")
        else:
            context["note"] = (
                "Your roles do not allow to order or release vPODs."
                if access.settings.awx and not access.may_change
                else "Ordering is off for this project. Ask the operator of the POD for a vPOD."
            )
        return context


class OrderView(forms.ModalFormView):
    """Form of an order."""

    form_class = OrderForm
    form_id = "order_vpod_form"
    modal_header = page_title = "Order vPOD"
    template_name = "openipu/order.html"
    submit_label = "Order vPOD"
    submit_url = reverse_lazy("horizon:project:ipus:order")
    success_url = reverse_lazy(INDEX)

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Answer the request. Without the right to order, or without AWX, redirect with a message."""
        try:
            response: HttpResponse = super().dispatch(request, *args, **kwargs)
        except UserError as error:
            return redirected(request, error, INDEX)
        return response


class TenantReportView(ReportView):
    """Rack report of the machines of the project."""

    index = INDEX

    def report(self, request: HttpRequest) -> str:
        """Return the page."""
        return tenant(request).report()
