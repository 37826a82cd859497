# SPDX-License-Identifier: GPL-3.0-or-later
"""Maintenance of a controller: backup, restore, certificate renewal, health, readiness."""

from __future__ import annotations

import datetime
import errno
import os
import shutil
import socket
import ssl
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest
from cryptography import x509

from openipu.process.notify import notify
from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.vipu.storage import backup, replacement
from openipu.vipu.storage.replacement import Replacement, journal_of
from openipu.vipu.storage.store import Store, StoreError
from openipu.vipu.tls import issue, renew
from tests.integration.vipu_servers import (
    Client,
    InProcess,
    InstantLife,
    Process,
    command,
    environment,
    partition,
    pod,
    run,
)

DAY = datetime.timedelta(days=1)
Start = Callable[..., Process]


def records(client: Client) -> tuple[list[str], list[str]]:
    partitions = client.user.ListPartitions(virmgrpc.ListPartitionsRequest()).partitions
    agents = client.admin.ListAgents(admin.ListAgentsRequest()).agents
    return sorted(each.id for each in partitions), sorted(each.spec.id for each in agents)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.fixture
def certs(tmp_path: Path) -> Path:
    issue.create(tmp_path / "certs", ["127.0.0.1", "localhost"], 5 * DAY)
    return tmp_path / "certs"


@pytest.fixture
def busy(vipu_server: Callable[..., InProcess]) -> InProcess:
    """Return a running controller with records of all kinds."""
    server = vipu_server(life=InstantLife)
    pod(server, 16, {"a1": 8, "a2": 8})
    for name in ("p1", "p2", "p3"):
        server.user.CreatePartition(partition(name, 4, "a1"))
    return server


def test_backup_of_a_running_controller_and_restore_on_an_empty_host(
    busy: InProcess, certs: Path, tmp_path: Path, vipu_server: Callable[..., InProcess]
) -> None:
    (tmp_path / "backups").mkdir()
    database = tmp_path / "vipu-server.db"
    options = ("--database", str(database), "--certs", str(certs))
    made = run("backup", *options, "--keep", "2", str(tmp_path / "backups"))
    (file,) = (tmp_path / "backups").iterdir()
    counts = "16 agents, 1 cluster, 2 allocations, 3 partitions and 0 users"
    assert (made.returncode, made.stdout) == (0, f"Backup written: {file} ({counts})\n"), made.stderr
    assert mode(file) == 0o600
    busy.user.CreatePartition(partition("later", 4, "a1"))
    before = records(busy)
    assert run("check", *options[:2]).stdout == f"Sound: {database} ({counts.replace('3 p', '4 p')})\n"

    host = tmp_path / "empty" / "host"
    restored = run("restore", "--database", str(host / "vipu-server.db"), "--certs", str(host / "certs"), str(file))
    assert restored.stdout == f"Restored: {host / 'vipu-server.db'} ({counts})\n", restored.stderr
    assert mode(host) == 0o700
    assert mode(host / "vipu-server.db") == 0o600
    assert mode(host / "certs" / "ca" / "ca.key") == 0o600
    assert mode(host / "certs" / "server") == 0o700
    for each in ("ca/ca.key", "server/server.crt", "client/client.key"):
        assert (host / "certs" / each).read_bytes() == (certs / each).read_bytes()
    assert not list(host.glob(".restore*"))
    again = vipu_server(database=host / "vipu-server.db", life=InstantLife)
    assert records(again) == (["p1", "p2", "p3"], before[1])
    assert records(busy) == before


def test_keep_removes_old_backups_only(busy: InProcess, certs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    foreign = [folder / "notes.txt", folder / "vipu-1.18.0.tar.gz", folder / "vipu-20261121T031700Z.tar.gz"]
    for file in foreign:
        file.write_text("mine")
    files = [backup.create(tmp_path / "vipu-server.db", certs, folder)[0] for _ in range(3)]
    assert backup.prune(folder, 2) == files[:1]
    assert sorted(folder.iterdir()) == sorted([*foreign, *files[1:]])
    rejected = run("backup", "--database", str(tmp_path / "vipu-server.db"), "--keep", "3", str(folder / "one.tar.gz"))
    assert rejected.returncode == 2
    assert "--keep counts the backups of a folder" in rejected.stderr


def test_restore_overwrites_only_on_request_and_keeps_the_old_files(
    busy: InProcess, certs: Path, tmp_path: Path, vipu_server: Callable[..., InProcess]
) -> None:
    database = tmp_path / "vipu-server.db"
    file, _ = backup.create(database, certs, tmp_path)
    busy.user.CreatePartition(partition("later", 4, "a1"))
    options = ("--database", str(database), "--certs", str(certs))
    rejected = run("restore", *options, str(file))
    assert rejected.returncode == 1
    assert rejected.stderr == (
        f"Error OPU613: Cannot restore '{file}': '{database}' already exists. Nothing was restored. "
        "Give --overwrite to replace it, or another --database and --certs.\n"
    )
    running = run("restore", *options, "--overwrite", str(file))
    assert running.returncode == 1
    assert "another vipu-server uses it" in running.stderr
    assert "later" in records(busy)[0]
    busy.stop()
    old_key = (certs / "server" / "server.key").read_bytes()
    for lost in (True, False):  # the second restore renames the files of the first
        restored = run("restore", *options, "--overwrite", str(file))
        assert restored.returncode == 0
        assert ("Not in the backup, or on other IPUs there: later. IPUs" in restored.stdout) is lost
    assert records(vipu_server(life=InstantLife))[0] == ["p1", "p2", "p3"]
    assert (certs / "server" / "server.key").read_bytes() == old_key
    assert Path(f"{certs}{backup.ASIDE}").is_dir()


def test_a_start_completes_an_interrupted_restore(
    vipu_process: Start, certs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = tmp_path / "vipu-server.db"
    server = vipu_process()
    pod(server, 4)
    file, _ = backup.create(database, certs, tmp_path)
    server.admin.CreateAgent(admin.CreateAgentRequest(spec=admin.AgentSpec(id="later", host="127.2.1.99")))
    assert server.stop() == 0
    with monkeypatch.context() as patch:  # as after a kill before the first move
        patch.setattr(replacement, "_complete", Mock(side_effect=KeyboardInterrupt))
        patch.setattr(Replacement, "_end_moves", Mock())
        patch.setattr(Replacement, "close", lambda self: os.close(self._descriptor))
        with pytest.raises(KeyboardInterrupt):
            backup.restore(file, database, certs, overwrite=True)
    assert journal_of(database).exists()
    assert records(vipu_process())[1] == ["ag01", "ag02", "ag03", "ag04"]
    assert not journal_of(database).exists()


def test_a_log_of_the_old_database_is_not_applied_to_the_restored_one(
    vipu_process: Start, certs: Path, tmp_path: Path, vipu_server: Callable[..., InProcess]
) -> None:
    """A killed controller leaves a write-ahead log."""
    server = vipu_process()
    pod(server, 4)
    file, _ = backup.create(tmp_path / "vipu-server.db", certs, tmp_path)
    server.admin.CreateAgent(admin.CreateAgentRequest(spec=admin.AgentSpec(id="later", host="127.2.1.99")))
    server.kill()
    assert (tmp_path / "vipu-server.db-wal").stat().st_size > 0
    backup.restore(file, tmp_path / "vipu-server.db", certs, overwrite=True)
    four = ["ag01", "ag02", "ag03", "ag04"]
    assert records(vipu_server(life=InstantLife))[1] == four
    aside = Store(Path(f"{tmp_path / 'vipu-server.db'}{backup.ASIDE}"))
    assert sorted(aside.load().agents) == [*four, "later"]
    aside.close()


def test_invalid_backups_are_rejected_without_changes(busy: InProcess, certs: Path, tmp_path: Path) -> None:
    database = tmp_path / "vipu-server.db"
    good, _ = backup.create(database, certs, tmp_path)
    busy.stop()
    before = database.read_bytes()
    garbage, cut, other, missing = (tmp_path / name for name in ("garbage", "cut", "other.tar", "missing"))
    garbage.write_bytes(b"nothing of the sort")
    cut.write_bytes(good.read_bytes()[:-2000])
    with tarfile.open(other, "w") as tar:
        tar.add(good, "something")
    for file in (garbage, cut, other):
        with pytest.raises(
            backup.BackupError, match=r"it is not a backup of a controller, or it is damaged\. Use another"
        ):
            backup.restore(file, database, certs, overwrite=True)
    with pytest.raises(backup.BackupError, match=f"Cannot restore '{missing}' to '{database}': no such file"):
        backup.restore(missing, database, certs, overwrite=True)
    assert database.read_bytes() == before
    assert not list(tmp_path.glob(".restore*"))


def test_a_damaged_database_is_not_backed_up(busy: InProcess, certs: Path, tmp_path: Path) -> None:
    database = tmp_path / "vipu-server.db"
    busy.stop()
    content = bytearray(database.read_bytes())
    content[4096:] = os.urandom(len(content) - 4096)  # all pages except the first
    database.write_bytes(content)
    with pytest.raises((backup.BackupError, StoreError)):
        backup.create(database, certs, tmp_path)
    assert not list(tmp_path.glob(backup.PATTERN))
    checked = run("check", "--database", str(database))
    assert (checked.returncode, checked.stderr.count("\n")) == (1, 1)
    assert checked.stderr.startswith("Error OPU6")


def test_full_disk(busy: InProcess, certs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "backups").mkdir()
    first, _ = backup.create(tmp_path / "vipu-server.db", certs, tmp_path / "backups")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(backup.BackupError, match=r"no space left on device\. No backup was created\. Older"):
        backup.create(tmp_path / "vipu-server.db", certs, tmp_path / "backups")
    assert list((tmp_path / "backups").iterdir()) == [first]


def shown(address: str, certs: Path) -> x509.Certificate:
    """Return the certificate that a controller presents."""
    host, port = address.split(":")
    context = ssl.create_default_context(cafile=str(certs / "client" / "ca.crt"))
    context.load_cert_chain(certs / "client" / "client.crt", certs / "client" / "client.key")
    context.set_alpn_protocols(["h2"])
    with (
        socket.create_connection((host, int(port)), 10) as plain,
        context.wrap_socket(plain, server_hostname=host) as s,
    ):
        return x509.load_der_x509_certificate(s.getpeercert(binary_form=True) or b"")


def test_certificates_are_renewed_under_a_running_controller(vipu_process: Start, certs: Path) -> None:
    server = vipu_process("--secure", "--certs", str(certs))
    old = shown(server.address, certs)
    options = ("renew", "--certs", str(certs), "--tls-days", "90")
    not_due = run(*options, "--within", "4")
    assert not_due.stdout.startswith("Nothing to renew: all are valid until "), not_due.stderr
    dry_run = run(*options, "--dry-run")
    assert [line.split(",")[0] for line in dry_run.stdout.splitlines()] == [
        "Would renew: server",
        "Would renew: client",
        "Would renew: controller",
    ]
    assert shown(server.address, certs) == old
    renewed = run(*options)
    assert [line.split(",")[0] for line in renewed.stdout.splitlines()] == [
        "Renewed: server",
        "Renewed: client",
        "Renewed: controller",
    ]
    new = shown(server.address, certs)
    assert new.not_valid_after_utc - old.not_valid_after_utc > 80 * DAY
    assert new.public_key() == old.public_key()
    health = (
        "health",
        "--secure",
        "--certs",
        str(certs),
        "--host",
        "127.0.0.1",
        "--port",
        server.address.split(":")[1],
    )
    assert run(*health).returncode == 0
    assert run(*options).stdout.startswith("Nothing to renew")


def test_an_invalid_replacement_certificate_is_not_used(vipu_process: Start, certs: Path, tmp_path: Path) -> None:
    server = vipu_process("--secure", "--certs", str(certs))
    good = shown(server.address, certs)
    issue.create(tmp_path / "other", ["127.0.0.1"])
    shutil.copy(tmp_path / "other" / "server" / "server.crt", certs / "server" / "server.crt")
    assert shown(server.address, certs) == good
    assert server.stop() == 0
    (error,) = [line for line in server.errors if "cannot use new certificates" in line]
    assert "server.key': it does not match certificate" in error


def test_renewal_with_other_names(certs: Path) -> None:
    options = ("renew", "--certs", str(certs), "--host", "127.0.0.1")
    assert run(*options, "--within", "0").stdout.startswith("Nothing to renew")
    renewed = run(*options, "--within", "0", "--tls-san", "pod.example", "--tls-san", "10.3.1.101")
    assert renewed.stdout.startswith("Renewed: server, until "), renewed.stderr
    certificate = x509.load_pem_x509_certificate((certs / "server" / "server.crt").read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(name.value) for name in names] == ["127.0.0.1", "localhost", "::1", "pod.example", "10.3.1.101"]
    assert mode(certs / "server" / "server.crt") == 0o644
    assert run(*options, "--within", "0").stdout.startswith("Nothing to renew"), "the certificate keeps its names"


def test_a_renewed_authority_keeps_its_key_and_old_clients_trust_it(
    vipu_process: Start, certs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(certs)
    monkeypatch.setattr(issue, "AUTHORITY_VALIDITY", 20 * DAY)
    issue.create(certs, ["127.0.0.1"], 20 * DAY)
    monkeypatch.undo()
    shutil.copytree(certs, tmp_path / "as-before")
    server = vipu_process("--secure", "--certs", str(certs))
    assert list(renew.renew(certs, 30 * DAY)) == ["ca", "users", "server", "client", "controller"]
    ca, users, server_ca, client_ca = (
        (certs / role / "ca.crt").read_bytes() for role in ("ca", "users", "server", "client")
    )
    assert (server_ca, client_ca) == (ca + users, ca)
    for client in (tmp_path / "as-before", certs):
        assert shown(server.address, client).not_valid_after_utc > datetime.datetime.now(datetime.UTC) + 800 * DAY


def test_certificates_are_checked_before_use(certs: Path, tmp_path: Path) -> None:
    def checked(host: str = "127.0.0.1") -> str:
        done = run("certificates", "--certs", str(certs), "--host", host)
        return done.stdout + done.stderr

    assert checked().startswith(f"Usable: {certs}, until ")
    server = certs / "server" / "server.crt"
    assert checked("10.3.1.101").startswith(
        f"Error OPU614: Cannot use certificate '{server}' for 10.3.1.101: ip address "
    )
    issue.create(tmp_path / "other", ["127.0.0.1"])
    shutil.copytree(tmp_path / "other" / "client", certs / "client", dirs_exist_ok=True)
    shutil.copy(certs / "server" / "ca.crt", certs / "client" / "ca.crt")
    assert checked().startswith(
        f"Error OPU614: Cannot use certificate '{certs / 'client' / 'client.crt'}' for 127.0.0.1: "
    )
    shutil.copy(tmp_path / "other" / "server" / "server.crt", server)
    assert "server.key': it does not match certificate" in checked()


def test_a_renewal_adds_the_authority_of_users(certs: Path, tmp_path: Path) -> None:
    """Folders of earlier releases have none. Servers accept its clients too, also after an interrupted renewal."""
    users = shutil.move(certs / "users", tmp_path / "made-before")
    shutil.copy(certs / "client" / "ca.crt", certs / "server" / "ca.crt")
    options = ("renew", "--certs", str(certs), "--within", "1")
    assert run(*options, "--dry-run").stdout.startswith("Would renew: users, until ")
    assert not (certs / "users").exists()
    assert run(*options).stdout.startswith("Renewed: users, until ")
    assert mode(certs / "users" / "ca.key") == 0o600
    both = (certs / "client" / "ca.crt").read_bytes() + (certs / "users" / "ca.crt").read_bytes()
    assert (certs / "server" / "ca.crt").read_bytes() == both
    shutil.copy(certs / "client" / "ca.crt", certs / "server" / "ca.crt")
    assert run(*options).stdout.startswith("Nothing to renew")
    assert (certs / "server" / "ca.crt").read_bytes() == both
    assert Path(users).is_dir()


def test_certificates_of_other_authorities_are_not_renewed(certs: Path) -> None:
    shutil.rmtree(certs / "ca")
    rejected = run("renew", "--certs", str(certs))
    assert rejected.returncode == 1
    assert rejected.stderr == (
        f"Error OPU614: Cannot read '{certs / 'ca' / 'ca.key'}': No such file or directory. Only certificates of "
        "'vipu-server --tls-init' can be renewed here. Renew others at their issuer.\n"
    )


def port_and_agents(port: str, certs: Path) -> list[str]:
    files = (("ca", "ca.crt"), ("certificate", "controller.crt"), ("key", "controller.key"))
    return ["--port", port, *(f"--agent-tls-{option}={certs / 'controller' / name}" for option, name in files)]


def test_health(vipu_process: Start, certs: Path) -> None:
    server = vipu_process()
    port = server.address.split(":")[1]
    healthy = run("health", "--port", port)
    assert (healthy.returncode, healthy.stdout) == (0, f"vipu-server 0.1.0 serves on 127.0.0.1:{port}\n")
    expired = port_and_agents(port, certs.parent / "expired")
    issue.create(certs.parent / "expired", [], -DAY)
    assert run("health", *expired).stderr.startswith("Error OPU614: Cannot use certificate ")
    assert "Certificates are valid until 20" in run("health", *port_and_agents(port, certs)).stdout
    with_tls = run("health", "--port", port, "--secure", "--certs", str(certs))
    assert with_tls.returncode == 1
    server.stop()
    stopped = run("health", "--port", port, "--wait", "0.5")
    assert stopped.returncode == 1
    message = f"Error OPU616: Cannot use the controller on 127.0.0.1:{port}: it does not serve after 0.5 s: "
    assert stopped.stderr.startswith(message)


def test_the_service_manager_is_notified(tmp_path: Path) -> None:
    run("--init", "--database", str(tmp_path / "vipu-server.db"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(20)
        process = subprocess.Popen(
            command("--database", str(tmp_path / "vipu-server.db"), "--port", "0"),
            env={**environment(), "NOTIFY_SOCKET": str(tmp_path / "notify")},
            stdout=subprocess.DEVNULL,
        )
        try:
            assert manager.recv(100) == b"READY=1"
            process.terminate()
            assert manager.recv(100) == b"STOPPING=1"
            assert process.wait(20) == 0
        finally:
            process.kill()
            process.wait()


def test_a_missing_service_manager_is_ignored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "missing"))
    notify("READY=1")


def test_options_of_commands_come_from_the_same_environment(tmp_path: Path) -> None:
    database = tmp_path / "vipu-server.db"
    run("--init", "--database", str(database))
    done = subprocess.run(
        command("check"), env={**environment(), "VIPU_SERVER_DATABASE": str(database)}, capture_output=True, text=True
    )
    assert done.stdout.startswith(f"Sound: {database} (0 agents"), done.stderr


def test_an_unknown_command_is_rejected() -> None:
    rejected = run("bakup")
    assert rejected.returncode == 2
    assert "No such command 'bakup'" in rejected.stderr
