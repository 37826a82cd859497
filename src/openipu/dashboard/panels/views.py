# SPDX-License-Identifier: GPL-3.0-or-later
"""Parts of the views of tenants and operators."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.generic import View
from horizon import exceptions, messages, tables

from openipu.shared.reconcile import UserError

_T = TypeVar("_T")


def redirected(request: HttpRequest, error: UserError, name: str) -> HttpResponse:
    """Return a redirect to the page with this name, which shows the error."""
    messages.error(request, error.message)
    return redirect(name)


class TablesView(tables.MultiTableView, ABC):
    """Page of tables. An error of a service is shown above its empty table."""

    template_name = "openipu/ipus.html"
    page_title = "IPUs"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._errors: set[str] = set()

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Answer the request. With invalid settings, redirect with a message."""
        try:
            self.access()
        except UserError as error:
            return redirected(request, error, "horizon:project:overview:index")
        response: HttpResponse = super().dispatch(request, *args, **kwargs)
        return response

    @abstractmethod
    def access(self) -> Any:
        """Return the access of the user. Raises SettingsError."""

    def rows(self, read: Callable[[], list[_T]]) -> list[_T]:
        """Return the rows of a table; none after an error, which is shown once."""
        try:
            return read()
        except UserError as error:
            if error.message not in self._errors:
                self._errors.add(error.message)
                messages.error(self.request, error.message)
        except Exception:  # noqa: BLE001 - Horizon knows the errors of OpenStack, and raises others again
            exceptions.handle(self.request, "Cannot read the projects in Keystone. Try again later.")
        return []


class ReportView(View, ABC):
    """Rack report: a page of its own, whose content security policy allows only its own script."""

    index: ClassVar[str]

    @abstractmethod
    def report(self, request: HttpRequest) -> str:
        """Return the page. Raises UserError."""

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Return the page, or redirect with the message of an error."""
        try:
            response = HttpResponse(self.report(request))
        except UserError as error:
            return redirected(request, error, self.index)
        response["Cache-Control"] = "no-store"
        return response
