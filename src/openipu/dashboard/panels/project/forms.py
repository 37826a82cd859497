# SPDX-License-Identifier: GPL-3.0-or-later
"""Form of an order. Its fields are questions of the survey, except for the project."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from horizon import exceptions, forms, messages

from openipu.dashboard.orders import OrderError
from openipu.dashboard.panels.cloud import tenant
from openipu.shared.vipu.object_rules import ID_PATTERN


class OrderForm(forms.SelfHandlingForm):
    """Order of one vPOD for the project of the user."""

    vpod_name = forms.RegexField(
        f"^(?:{ID_PATTERN})\\Z",
        max_length=63,
        label="Name",
        error_messages={"invalid": "Use letters, digits, '.', '_' and '-'. Start with a letter, a digit or '_'."},
    )
    vpod_ipus = forms.ChoiceField(label="IPUs", help_text="IPU-Machines of 4 IPUs are not shared.")
    vpod_flavor = forms.ChoiceField(label="Flavor")
    vpod_image = forms.ChoiceField(label="Image")
    vpod_poplar_server = forms.ChoiceField(label="Poplar Server")
    keys = forms.MultipleChoiceField(
        label="Key Pairs", help_text="Their owners can log in to the VM.", widget=forms.CheckboxSelectMultiple
    )

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        """Read the choices and the quota in IPUs. Raises UserError."""
        super().__init__(request, *args, **kwargs)
        access = tenant(request)
        awx = access.settings.awx
        self._keys = access.keys()
        choices = {
            "vpod_ipus": access.survey.ipus,
            "vpod_flavor": access.flavors(),
            "vpod_image": access.survey.images,
            "vpod_poplar_server": awx.poplar_servers if awx else (),
            "keys": self._keys,
        }
        if usage := access.ipu_usage:
            self.fields["vpod_ipus"].help_text += f" IPUs used / quota: {usage.used} / {usage.limit}."
        for name, values in choices.items():
            self.fields[name].choices = [(value, value) for value in values]

    def handle(self, request: HttpRequest, data: dict[str, Any]) -> bool:
        """Launch the order, or show the reason against it in the form."""
        answers = {name: value for name, value in data.items() if name.startswith("vpod_")}
        try:
            tenant(request).order({**answers, "vpod_public_keys": "\n".join(self._keys[key] for key in data["keys"])})
        except OrderError as error:
            self.api_error(error.message)
            return False
        except Exception:  # noqa: BLE001 - Horizon knows the errors of OpenStack, and raises others again
            exceptions.handle(request, "Cannot compare the order with the quotas of the project. Try again later.")
            return False
        messages.success(request, f"Ordered vPOD '{data['vpod_name']}'. An operator approves the order.")
        return True
