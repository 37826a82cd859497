# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Neutron API: quotas and extensions."""

from __future__ import annotations

import typing as t

from ...reconcile import Object
from ..common.client import Cloud, CloudError


class CloudLimits:
    """Quotas of a project and extensions of Neutron, read from the API."""

    def __init__(self, cloud: Cloud, project: str) -> None:
        self._cloud = cloud
        self._project = project
        self._extensions: set[str] | None = None

    def quotas(self) -> dict[str, Object]:
        """Read limit, usage and reservation by name of the quota; empty when the cloud does not report them."""
        try:
            found = self._cloud.request("network", "GET", "/quotas/%s/details.json" % self._project)
        except CloudError as error:
            if error.status in (403, 404):
                return {}
            raise
        return t.cast("dict[str, Object]", found["quota"])

    def has_extension(self, alias: str) -> bool:
        """Return whether Neutron has an API extension; True when it does not list them. Raises CloudError."""
        if self._extensions is None:
            try:
                found = self._cloud.list("network", "/extensions", "extensions")
            except CloudError as error:
                if error.status not in (403, 404):
                    raise
                found = []
            self._extensions = {extension["alias"] for extension in found}
        return alias in self._extensions or not self._extensions
