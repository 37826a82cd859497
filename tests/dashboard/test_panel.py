# SPDX-License-Identifier: GPL-3.0-or-later
"""The panel of Horizon in a browser: a tenant orders, uses and releases a vPOD, and another one sees nothing of it.

Screenshots are in build/screenshots.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from openstack.connection import Connection as Cloud
from playwright.sync_api import Browser, Page, expect

from tests.browser.chromium import DESKTOP, PHONE
from tests.dashboard.conftest import SCREENSHOTS, SECONDS, Panel
from tools.ee.jobs import Launch
from tools.openstack.site import HOSTS

pytestmark = [
    pytest.mark.timeout(1800),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # about future releases of the SDK
]

_PUBLIC = Ed25519PrivateKey.generate().public_key()
KEY = f"{_PUBLIC.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()} alice"


class User:
    """Session of one user in Horizon."""

    def __init__(self, page: Page, panel: Panel, name: str) -> None:
        self.page, self.panel, self.name = page, panel, name
        self.errors: list[str] = []
        page.set_default_timeout(SECONDS)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.goto(panel.url)
        if page.locator("#id_domain").count():
            page.fill("#id_domain", "Default")
        page.fill("#id_username", name)
        page.fill("#id_password", panel.passwords[name])
        page.click("#loginBtn")
        expect(page).not_to_have_url(re.compile("/auth/login/"))

    def open(self, path: str = "project/ipus/") -> None:
        self.page.goto(self.panel.url + path)

    def rows(self, table: str) -> list[list[str]]:
        """Return the texts of a table, without the actions."""
        rows = self.page.locator(f"#{table} tbody tr:not(.empty)").all()
        return [
            [text.strip() for text in row.locator("td:not(.actions_column)").all_text_contents() if text.strip()]
            for row in rows
        ]

    def alerts(self) -> str:
        """Return the messages on the page."""
        return " ".join(" ".join(self.page.locator(".alert").all_text_contents()).split())

    def confirm(self, table: str, row: str, label: str) -> None:
        """Click the action of a row, and confirm it."""
        self.page.locator(f"#{table} tbody tr", has_text=row).get_by_role("button", name=label).click()
        dialog = self.page.locator(".modal-dialog")
        expect(dialog).to_contain_text(row)
        dialog.locator(".btn-danger, .btn-primary").last.click()
        expect(self.page.locator(".alert").first).to_be_visible()

    def post(self, path: str, **fields: Any) -> int:
        """Send a forged form with the session of this user, and return the status of its answer."""
        token = next(each["value"] for each in self.page.context.cookies() if each["name"] == "csrftoken")
        form = {"csrfmiddlewaretoken": token, **fields}
        headers = {"Referer": self.panel.url}
        return self.page.request.post(self.panel.url + path, form=form, headers=headers, max_redirects=0).status

    def fill(self, order: dict[str, Any], **changes: str) -> None:
        """Open the form of an order and submit it."""
        page = self.page
        page.get_by_role("link", name="Order vPOD").click()
        form = page.locator("#order_vpod_form")
        form.locator("[name=vpod_name]").fill(changes.get("vpod_name", order["vpod_name"]))
        for name in ("vpod_image", "vpod_flavor"):
            form.locator(f"[name={name}]").select_option(order[name], force=True)
        form.locator("[name=vpod_ipus]").select_option(str(order["vpod_ipus"]), force=True)
        form.locator("[name=vpod_poplar_server]").select_option(HOSTS[0], force=True)
        form.locator("[name=keys]").first.check(force=True)

    def submit(self) -> None:
        self.page.locator("#order_vpod_form").get_by_role("button", name="Order vPOD").click()

    def screenshot(self, name: str) -> None:
        for size, viewport in (("desktop", DESKTOP), ("phone", PHONE)):
            self.page.set_viewport_size(viewport)
            wide = self.page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0 or self.page.locator(".modal-dialog").count(), f"{name} is {wide} pixels too wide"
            self.page.screenshot(path=SCREENSHOTS / f"{name}-{size}.png", full_page=True)
        self.page.set_viewport_size(DESKTOP)


@contextmanager
def session(browser: Browser, panel: Panel, name: str) -> Iterator[User]:
    """Session of a user, without errors of scripts at its end."""
    context = browser.new_context(viewport=DESKTOP)
    user = User(context.new_page(), panel, name)
    yield user
    assert user.errors == []
    context.close()


@pytest.fixture
def key_pair(connect: Any, order: dict[str, Any]) -> Iterator[str]:
    """Key pair of the user of tenant-a."""
    tenant = connect("tenant-a")
    created = tenant.compute.create_keypair(name=order["vpod_name"], public_key=KEY)
    yield created.name
    tenant.compute.delete_keypair(created)


@pytest.fixture
def reader(admin: Cloud, panel: Panel, order: dict[str, Any]) -> Iterator[str]:
    """User who may only read in the project of tenant-a, with a key pair of the same name."""
    project = admin.identity.find_project("tenant-a", ignore_missing=False)
    name = f"{order['vpod_name']}-reader"
    panel.passwords[name] = panel.passwords["tenant-a"]
    user = admin.identity.create_user(name=name, password=panel.passwords[name], default_project_id=project.id)
    role = admin.identity.find_role("reader", ignore_missing=False)
    admin.identity.assign_project_role_to_user(project, user, role)
    key = {"name": name, "public_key": KEY, "user_id": user.id}
    created = admin.compute.post("/os-keypairs", json={"keypair": key}, microversion="2.10")
    assert created.status_code == 201, created.text
    yield name
    admin.compute.delete(f"/os-keypairs/{name}", params={"user_id": user.id}, microversion="2.10")
    admin.identity.delete_user(user)


def run_order(panel: Panel, job: dict[str, Any]) -> None:
    """Approve and run an order, as the AWX would."""
    created = panel.jobs.run_workflow("Order a vPOD", json.loads(job["extra_vars"]))
    assert created.status == "successful", {name: each.stdout for name, each in created.jobs.items()}
    assert list(created.jobs) == ["create", "access"]
    job["status"] = "successful"


def run_release(panel: Panel, job: dict[str, Any]) -> None:
    """Run a release, as the AWX would."""
    done = panel.jobs.launch("Destroy a vPOD", Launch(answers=json.loads(job["extra_vars"])))
    assert done.status == "successful", done.stdout
    job["status"] = "successful"


def test_a_tenant_orders_uses_and_releases_a_vpod(
    browser: Browser,
    panel: Panel,
    admin: Cloud,
    connect: Callable[[str], Cloud],
    order: dict[str, Any],
    key_pair: str,
    reader: str,
) -> None:
    name = order["vpod_name"]
    project = admin.identity.find_project("tenant-a", ignore_missing=False)
    with (
        session(browser, panel, "tenant-a") as alice,
        session(browser, panel, "tenant-b") as bob,
        session(browser, panel, reader) as carol,
    ):
        alice.open()
        assert (alice.rows("vpods"), alice.rows("partitions"), alice.rows("orders")) == ([], [], [])

        # Beyond a quota of Nova, nothing is launched.
        admin.compute.update_quota_set(project, instances=0)
        alice.fill(order)
        alice.submit()
        rejected = "it needs 1 VM more (quota 0, used 0)"
        expect(alice.page.locator("#order_vpod_form")).to_contain_text(rejected)
        alice.screenshot("panel-beyond-quota")
        admin.compute.update_quota_set(project, instances=10)
        assert panel.launched("workflow_jobs") == []

        alice.open()
        assert "IPUs used / quota: 0 / 16" in alice.page.content()
        alice.fill(order)
        alice.screenshot("panel-order")
        alice.submit()
        expect(alice.page.locator("#orders")).to_contain_text("waiting for approval")
        [job] = panel.launched("workflow_jobs")
        answers = json.loads(job["extra_vars"])
        assert (answers["vpod_name"], answers["vpod_tenant"], answers["vpod_ipus"]) == (name, "tenant-a", "16")
        assert answers["vpod_tenant_id"] == project.id
        assert answers["vpod_public_keys"] == KEY

        # A second order of this name is rejected while the first one waits.
        alice.fill(order)
        alice.submit()
        expect(alice.page.locator("#order_vpod_form")).to_contain_text("this project has one of this name")
        assert len(panel.launched("workflow_jobs")) == 1
        run_order(panel, job)

        alice.open()
        [allocation] = panel.listed("allocations")
        machines = allocation["agents"]
        assert alice.rows("vpods") == [[name, "16", ", ".join(machines), "ACTIVE"]]
        assert "IPUs used / quota: 16 / 16" in alice.page.content()
        assert alice.rows("partitions") == [[name, name, "16", "ACTIVE"]]
        assert [row[:4] for row in alice.rows("orders")] == [[name, "Order", "16", "Done"]]
        alice.screenshot("panel-tenant")
        alice.open("project/ipus/report/")
        expect(alice.page.locator("h1")).to_have_text("tenant-a")
        others = {agent["id"] for agent in panel.listed("agents")} - set(machines)
        assert set(re.findall(r"\bag\d\d\b", alice.page.content())) == set(machines)
        assert len(others) == 12
        assert "127." not in alice.page.content(), "addresses of machines"
        alice.screenshot("panel-report")

        check_strangers(panel, bob, carol, order, connect)
        check_operator(browser, panel, order)

        alice.open()
        alice.confirm("partitions", name, "Delete Partition")
        assert f"Deleted Partition: {name}" in alice.alerts()
        assert panel.listed("partitions") == []
        assert alice.rows("vpods") == [[name, "16", ", ".join(machines), "no partition"]]

        alice.confirm("vpods", name, "Release vPOD")
        [release] = panel.launched("jobs")
        answers = {"vpod_name": name, "vpod_tenant": "tenant-a", "vpod_tenant_id": project.id}
        assert json.loads(release["extra_vars"]) == answers
        assert alice.rows("orders")[0][:3] == [name, "Release", "Waiting"]
        run_release(panel, release)
        alice.open()
        assert (alice.rows("vpods"), alice.rows("partitions"), panel.listed("allocations")) == ([], [], [])


def check_strangers(
    panel: Panel, bob: User, carol: User, order: dict[str, Any], connect: Callable[[str], Cloud]
) -> None:
    """Check that other users can neither see nor change the vPOD of tenant-a, not even with forged requests."""
    name = order["vpod_name"]
    bob.open()
    assert (bob.rows("vpods"), bob.rows("partitions"), bob.rows("orders")) == ([], [], [])
    assert "IPUs used" not in bob.page.content()
    assert name not in bob.page.content()
    bob.open("project/ipus/report/")
    assert not re.findall(r"\bag\d\d\b", bob.page.content())
    for path in ("admin/ipus/", "admin/ipus/report/"):
        assert bob.page.request.get(panel.url + path).status == 403

    def launched() -> tuple[Any, ...]:
        return panel.listed("partitions"), panel.launched("jobs"), len(panel.launched("workflow_jobs"))

    before = launched()
    carol.open()
    assert carol.rows("vpods")[0][0] == name, "readers see the vPODs of their project"
    assert "Your roles do not allow to order or release vPODs." in carol.alerts()
    carol.screenshot("panel-reader")
    for label in ("Release vPOD", "Delete Partition", "Order vPOD"):
        assert carol.page.get_by_text(label, exact=True).count() == 0
    forged = {name: str(order[name]) for name in ("vpod_image", "vpod_flavor", "vpod_ipus", "vpod_poplar_server")}
    project = connect("tenant-a").current_project_id
    forged |= {"vpod_name": f"{name}2", "vpod_tenant": "tenant-a", "vpod_tenant_id": project}
    for user in (bob, carol):
        user.open()
        user.post("project/ipus/", action=f"vpods__release__{name}")
        user.post("project/ipus/", action=f"partitions__delete__{name}")
        assert launched() == before
    # The order of the reader is complete, so the right to order is what it lacks.
    assert carol.post("project/ipus/order/", **forged, keys=carol.name) == 302
    carol.open()
    assert "You may not order or release vPODs in this project. Ask the operator of the POD." in carol.alerts()
    assert launched() == before

    # The project of an order is that of the token, whatever the form contains.
    tenant = connect("tenant-b")
    created = tenant.compute.create_keypair(name=name, public_key=KEY)
    try:
        bob.open()
        assert bob.post("project/ipus/order/", **forged, keys=name) == 302
    finally:
        tenant.compute.delete_keypair(created)
    job = panel.launched("workflow_jobs")[0]
    answers = json.loads(job["extra_vars"])
    assert (answers["vpod_tenant"], answers["vpod_tenant_id"]) == ("tenant-b", tenant.current_project_id)
    job["status"] = "canceled"
    bob.open()
    assert [row[:4] for row in bob.rows("orders")] == [[f"{name}2", "Order", "16", "Cancelled"]]


def check_operator(browser: Browser, panel: Panel, order: dict[str, Any]) -> None:
    """Check that an operator sees the vPODs of all tenants and all machines."""
    with session(browser, panel, "admin") as operator:
        operator.open("admin/ipus/")
        [vpod] = operator.rows("vpods")
        assert (vpod[:3], vpod[-1]) == ([order["vpod_name"], "tenant-a", "16"], "ACTIVE")
        assert [row[0] for row in operator.rows("partitions")] == [order["vpod_name"]]
        operator.screenshot("panel-operator")
        operator.open("admin/ipus/report/")
        machines = {agent["id"] for agent in panel.listed("agents")}
        assert set(re.findall(r"\bag\d\d\b", operator.page.content())) == machines
