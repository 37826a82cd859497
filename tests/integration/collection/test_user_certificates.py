# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the certificates of ``vipu_user``: issue, renewal, revocation, and users with a shared certificate."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest

from openipu.shared.vipu import certificates
from openipu.shared.vipu.client import ACCESS_KEY_METADATA, USER_ID_METADATA
from openipu.shared.vipu.contract import admin
from openipu.vipu.api import auth
from openipu.vipu.domain.model import Put, Role
from openipu.vipu.tls import issue, load
from tests.integration.collection.playbook import results
from tests.integration.collection.tasks import Perform, performer, task
from tests.integration.collection.test_users_playbook import users_playbook
from tests.integration.vipu_servers import InProcess, InstantLife


class Controller:
    """Secure controller, and its first administrator with a shared certificate."""

    def __init__(self, make: Callable[..., InProcess], folder: Path, *, shared: bool = False) -> None:
        certs = folder / "certs"
        issue.create(certs, ["127.0.0.1"])
        files = load.client_files(certs)
        channel = grpc.ssl_channel_credentials(
            *(Path(files[name]).read_bytes() for name in ("ca_path", "client_key", "client_cert"))
        )
        self.server = make(
            life=InstantLife,
            channel=channel,
            credentials=load.server_credentials(certs),
            certs=certs,
            shared_certificates=shared,
        )
        user, key = auth.new_user("root", Role.ADMIN, (), shared_certificate=True)
        self.server.server.controller.submit(lambda state: ([Put(user)], None)).result(10)
        self.options = {**files, "api_user_id": "root", "api_access_key": key}

    def perform(self, **options: Any) -> dict[str, Any]:
        return performer(self.server)("vipu_user", **{**self.options, "id": "alice", "allocations": [], **options})

    def can_call(self, config: Path) -> bool:
        """Return whether the settings in the file of a user are sufficient for a call."""
        settings = dict(re.findall(r'^([a-z-]+)="(.*)"$', config.read_text(), re.MULTILINE))
        used = {name.replace("-", "_"): settings[name] for name in settings if name not in ("api-host", "api-port")}
        found = performer(self.server)("vipu_partition_info", **used)
        assert not found.get("failed") or "the certificate is not one of this user" in found["msg"], found
        return not found.get("failed")


@pytest.fixture
def controller(vipu_server: Callable[..., InProcess], tmp_path: Path) -> Controller:
    return Controller(vipu_server, tmp_path)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "users" / "alice.vipu-cli.hcl"


@pytest.fixture
def alice(controller: Controller, config: Path) -> Perform:
    return partial(controller.perform, config_dest=str(config))


def keys(outcome: dict[str, Any]) -> list[tuple[str, bool]]:
    return [(each["key"], each["revoked"]) for each in outcome["certificates"]]


def test_a_new_user_gets_a_certificate(controller: Controller, alice: Perform, config: Path) -> None:
    assert alice(check=True)["changed"]
    assert not config.parent.exists()
    made = alice()
    assert (made["changed"], made["client_cert"]) == (True, str(config.parent / "alice.crt"))
    assert "PRIVATE" not in json.dumps(made)
    assert {path.stat().st_mode & 0o777 for path in config.parent.iterdir()} == {0o600}
    assert controller.can_call(config)
    for check in (True, False):
        again = alice(check=check)
        assert (again["changed"], again["certificates"]) == (False, made["certificates"])


def test_a_certificate_is_renewed_with_the_same_key(controller: Controller, alice: Perform, config: Path) -> None:
    made, key = alice(), (config.parent / "alice.key").read_text()
    predicted = alice(certificate_renew_within=900, check=True)
    assert (predicted["changed"], predicted["certificates"][0]["serial"]) == (True, None)
    assert predicted["diff"]["before"]["certificates"]["alice"] == made["certificates"]
    renewed = alice(certificate_renew_within=900)
    assert renewed["changed"] and keys(renewed) == keys(made)
    assert renewed["certificates"] != made["certificates"]
    assert renewed["diff"]["after"]["certificates"]["alice"] == renewed["certificates"]
    assert (config.parent / "alice.key").read_text() == key
    assert not alice()["changed"]
    assert controller.can_call(config)


@pytest.mark.parametrize("lost", ["alice.crt", "alice.key"])
def test_lost_files_are_replaced(controller: Controller, alice: Perform, config: Path, lost: str) -> None:
    made = alice()
    (config.parent / lost).unlink()
    repaired = alice(certificate=True)
    assert repaired["changed"] and controller.can_call(config)
    assert len(repaired["certificates"]) == (1 if lost == "alice.crt" else 2)
    assert keys(made)[0] in keys(repaired)
    assert not alice()["changed"]


def test_a_revoked_certificate_is_replaced(controller: Controller, alice: Perform, config: Path) -> None:
    (stolen,) = keys(alice())
    copies = {path: path.read_text() for path in config.parent.iterdir()}
    predicted = alice(revoked_certificates=[stolen[0]], check=True)
    assert predicted["changed"] and keys(predicted) == [(stolen[0], True), (None, False)]
    replaced = alice(revoked_certificates=[stolen[0]])
    assert keys(replaced)[0] == (stolen[0], True)
    assert [revoked for _, revoked in keys(replaced)] == [True, False]
    assert controller.can_call(config)
    for digits in (stolen[0], stolen[0][:8].upper()):
        assert not alice(revoked_certificates=[digits])["changed"]
    for path, content in copies.items():
        path.write_text(content)
    assert not controller.can_call(config)
    unknown = alice(revoked_certificates=["0" * 64])
    assert "it has none with this key fingerprint. Correct revoked_certificates." in unknown["msg"]
    assert "needs at least 8 digits" in alice(revoked_certificates=[stolen[0][:7]])["msg"]


def test_a_user_with_a_shared_certificate_keeps_it(
    vipu_server: Callable[..., InProcess], tmp_path: Path, config: Path
) -> None:
    """Until the option asks for a certificate of its own."""
    controller = Controller(vipu_server, tmp_path, shared=True)
    alice = partial(controller.perform, config_dest=str(config))
    assert "certificates" not in alice()
    assert [path.name for path in config.parent.iterdir()] == [config.name]
    assert controller.can_call(config)
    assert not alice()["changed"]
    key = re.findall('api-access-key="(.*)"', config.read_text())
    own = alice(certificate=True)
    assert own["changed"] and controller.can_call(config)
    assert str(config.parent / "alice.crt") in config.read_text()
    assert re.findall('api-access-key="(.*)"', config.read_text()) == key
    assert not alice(certificate=True)["changed"]


def test_a_certificate_of_the_caller_alone_is_not_shared(
    vipu_server: Callable[..., InProcess], tmp_path: Path, config: Path
) -> None:
    controller = Controller(vipu_server, tmp_path, shared=True)
    certificate, key = certificates.paths(tmp_path, "root")
    request = admin.AddCertificateRequest(user_id="root", signing_request=certificates.signing_request(key, "root"))
    metadata = [(USER_ID_METADATA, "root"), (ACCESS_KEY_METADATA, controller.options["api_access_key"])]
    certificate.write_bytes(controller.server.admin.AddCertificate(request, metadata=metadata, timeout=10).certificate)
    controller.options.update(client_cert=str(certificate), client_key=str(key))
    made = controller.perform(config_dest=str(config))
    assert "client-" not in config.read_text()
    assert made["warnings"] == [
        f"File '{config}' names no certificate, because the one of this task is for user 'root' only. Set client-cert "
        "and client-key in the file to the shared certificate, or set certificate to true."
    ]


def test_a_caller_gets_its_first_certificate(
    vipu_server: Callable[..., InProcess], tmp_path: Path, config: Path
) -> None:
    """The certificate of the task is of no use from then on, which is no failure of the task."""
    controller = Controller(vipu_server, tmp_path, shared=True)
    file = tmp_path / "root.vipu-cli.hcl"
    made = controller.perform(id="root", role="admin", config_dest=str(file), certificate=True)
    assert (made["changed"], made["client_cert"]) == (True, str(tmp_path / "root.crt"))
    assert made["warnings"] == [
        "From now on, user 'root' can call only with this certificate. "
        "Set client_cert and client_key of the connection to client_cert and client_key of the result."
    ]
    controller.options.update(client_cert=made["client_cert"], client_key=made["client_key"])
    assert not controller.perform(id="root", role="admin", config_dest=str(file), certificate=True)["changed"]


def test_users_of_other_hosts_keep_their_certificates(controller: Controller, alice: Perform, tmp_path: Path) -> None:
    """A host without the files of a user, such as a fresh runner of CI, does not add certificates."""
    alice()
    elsewhere = controller.perform(config_dest=str(tmp_path / "elsewhere" / "alice.hcl"))
    assert (elsewhere["changed"], "certificates" in elsewhere) == (False, False)


def test_unusable_keys_and_transports(alice: Perform, config: Path) -> None:
    alice()
    (config.parent / "alice.key").write_text("not a key")
    failed = alice()
    assert failed["failed"] and "Remove the file to get a new key." in failed["msg"]
    failed = alice(certificate=True, transport="cli", vipu_admin_path="vipu-admin", vipu_path="vipu")
    assert "Cannot manage certificates of user 'alice' over the command line." in failed["msg"]


@pytest.mark.parametrize("fast_path", [True, False], ids=["action", "module"])
def test_in_a_playbook(controller: Controller, tmp_path: Path, config: Path, fast_path: bool) -> None:
    host, port = controller.server.address.rsplit(":", 1)
    tasks = [task("vipu_user", id="alice", config_dest=str(config), certificate=True)] * 2
    found = results(
        tmp_path,
        tasks,
        controller={**controller.options, "api_host": host, "api_port": int(port)},
        openipu_fast_path=fast_path,
    )
    assert [(each["failed"], each["changed"]) for each in found] == [(False, True), (False, False)], found
    assert "PRIVATE" not in json.dumps(found)
    assert controller.can_call(config)


def test_the_users_of_a_pod(controller: Controller, tmp_path: Path) -> None:
    """The playbook of the POD gives new users certificates, and revokes those that a variable names."""
    folder = tmp_path / "users"
    host, port = controller.server.address.rsplit(":", 1)
    variables = {
        "vipu_connection": {**controller.options, "api_host": host, "api_port": int(port)},
        "vipu_pod_users": [{"id": id, "role": "user", "allocations": []} for id in ("alice", "bob")],
        "vipu_users_folder": str(folder),
    }

    def run(**more: Any) -> str:
        hosts = {"controllers": {"hosts": {"server1": {**variables, **more}}}}
        return users_playbook(tmp_path, hosts)

    assert "changed=1" in run()
    assert sorted(path.name for path in folder.iterdir()) == [
        f"{id}.{suffix}" for id in ("alice", "bob") for suffix in ("crt", "key", "vipu-cli.hcl")
    ]
    assert "changed=0" in run()
    (stolen,) = keys(controller.perform(config_dest=str(folder / "alice.vipu-cli.hcl")))
    assert "changed=1" in run(vipu_revoked_certificates={"alice": [stolen[0]]})
    assert all(controller.can_call(folder / f"{id}.vipu-cli.hcl") for id in ("alice", "bob"))
    assert "changed=0" in run(vipu_revoked_certificates={"alice": [stolen[0]]})


def test_a_new_user_does_not_get_the_certificate_of_the_caller(
    controller: Controller, alice: Perform, config: Path
) -> None:
    alice(certificate=False)
    assert ("ca-path" in config.read_text(), "client-" in config.read_text()) == (True, False)
    assert alice(certificate=True)["changed"] and controller.can_call(config)


def test_a_user_that_is_created_again_gets_a_new_key(controller: Controller, alice: Perform, config: Path) -> None:
    ((stolen, _),) = keys(alice())
    alice(revoked_certificates=[stolen], certificate=False)
    alice(state="absent")
    for changed in (True, False):
        again = alice(revoked_certificates=[stolen])
        assert (again["changed"], [revoked for _, revoked in keys(again)]) == (changed, [True, False])
        assert controller.can_call(config)


def test_a_controller_that_is_not_secure_issues_no_certificates(
    vipu_server: Callable[..., InProcess], config: Path
) -> None:
    perform = performer(vipu_server())
    for check in (True, False):
        found = perform("vipu_user", id="alice", config_dest=str(config), certificate=True, check=check)
        assert "certificate for user 'alice': the controller runs without --secure." in found["msg"]
    assert not config.parent.exists()
    assert perform("vipu_user", id="alice", state="absent")["changed"] is False
