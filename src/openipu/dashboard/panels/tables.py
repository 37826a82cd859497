# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables of vPODs, partitions and orders."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from horizon import messages, tables

from openipu.dashboard.ownership import Object, Vpod
from openipu.dashboard.panels.cloud import tenant
from openipu.shared.reconcile import UserError

_CREATING = "being created or destroyed"


def _state(vpod: Vpod) -> str:
    """Return the states of the partitions of a vPOD."""
    if not vpod.allocation:
        return _CREATING
    states = dict.fromkeys(each["state"] for each in vpod.partitions)
    return ", ".join(states) or "no partition"


class Release(tables.BatchAction):
    """Release of a vPOD, after a confirmation."""

    name = "release"
    action_type = "danger"
    help_text = "The VM and the partitions are deleted, and the IPU-Machines are free for others."

    @staticmethod
    def action_present(count: int) -> str:
        """Return the label of the button."""
        return "Release vPOD" if count == 1 else "Release vPODs"

    @staticmethod
    def action_past(count: int) -> str:
        """Return the text after the launch."""
        return "Started the release of vPOD" if count == 1 else "Started the release of vPODs"

    def allowed(self, request: HttpRequest, datum: Any = None) -> bool:
        """Return whether the user may release the vPOD. Without one, Horizon asks for the action itself."""
        return tenant(request).may_order if datum is None else tenant(request).may_release(datum.name)

    def action(self, request: HttpRequest, name: str) -> None:
        """Release a vPOD of the project of the user."""
        _reported(request, lambda: tenant(request).release(name))


class RemovePartition(tables.DeleteAction):
    """Removal of a partition, after a confirmation."""

    help_text = "Programs that use its IPUs fail. The IPU-Machines stay in the vPOD."

    @staticmethod
    def action_present(count: int) -> str:
        """Return the label of the button."""
        return "Delete Partition" if count == 1 else "Delete Partitions"

    @staticmethod
    def action_past(count: int) -> str:
        """Return the message after the removal."""
        return "Deleted Partition" if count == 1 else "Deleted Partitions"

    def allowed(self, request: HttpRequest, datum: Any = None) -> bool:
        """Return whether the user may delete partitions."""
        return tenant(request).may_change

    def delete(self, request: HttpRequest, id: str) -> None:
        """Remove a partition of the project of the user."""
        _reported(request, lambda: tenant(request).remove_partition(id))


def _reported(request: HttpRequest, change: Any) -> None:
    """Run a change, and show the message of its error. Horizon shows only that it failed."""
    try:
        change()
    except UserError as error:
        messages.error(request, error.message)
        raise


class VpodsTable(tables.DataTable):
    """vPODs of a project."""

    name = tables.Column(lambda vpod: vpod.name, verbose_name="vPOD")
    ipus = tables.Column(lambda vpod: vpod.ipus or "", verbose_name="IPUs")
    machines = tables.Column(lambda vpod: ", ".join(vpod.machines), verbose_name="IPU-Machines")
    state = tables.Column(_state, verbose_name="Partitions")

    def get_object_id(self, vpod: Vpod) -> str:
        """Return the name, which is unique in a project."""
        return vpod.name

    class Meta:
        name = "vpods"
        verbose_name = "vPODs"
        multi_select = hidden_title = footer = False
        row_actions = (Release,)


class AllVpodsTable(VpodsTable):
    """vPODs of all projects, and allocations without a vPOD."""

    project = tables.Column(lambda vpod: vpod.project or "none", verbose_name="Project")

    class Meta:
        name = "vpods"
        verbose_name = "vPODs and Allocations"
        multi_select = hidden_title = footer = False
        columns = ("name", "project", "ipus", "machines", "state")


class PartitionsTable(tables.DataTable):
    """Partitions with their states."""

    name = tables.Column(lambda each: each["id"], verbose_name="Partition")
    allocation = tables.Column(lambda each: each["allocation"], verbose_name="Allocation")
    size = tables.Column(lambda each: each["size"], verbose_name="IPUs")
    state = tables.Column(lambda each: each["state"], verbose_name="State")
    errors = tables.Column(lambda each: " ".join(each["errors"]), verbose_name="Messages")

    def get_object_id(self, partition: Object) -> str:
        """Return the id of a partition."""
        return str(partition["id"])

    def get_object_display(self, partition: Object) -> str:
        """Return the id of a partition for messages."""
        return str(partition["id"])

    class Meta:
        name = "partitions"
        verbose_name = "Partitions"
        multi_select = hidden_title = footer = False
        row_actions = (RemovePartition,)


class AllPartitionsTable(PartitionsTable):
    """Partitions of all projects, read-only."""

    class Meta:
        name = "partitions"
        verbose_name = "Partitions"
        multi_select = hidden_title = footer = False


class OrdersTable(tables.DataTable):
    """Jobs of AWX that order and release vPODs of a project."""

    vpod = tables.Column(lambda order: order.vpod, verbose_name="vPOD")
    action = tables.Column(lambda order: order.action, verbose_name="Action")
    ipus = tables.Column(lambda order: order.ipus, verbose_name="IPUs")
    status = tables.Column(lambda order: order.status, verbose_name="Status")
    created = tables.Column(lambda order: order.created[:19].replace("T", " "), verbose_name="Ordered at (UTC)")

    class Meta:
        name = "orders"
        verbose_name = "Orders"
        multi_select = hidden_title = footer = False
