# SPDX-License-Identifier: GPL-3.0-or-later
"""File of the database: permissions, locking, versions and damage."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

from openipu.shared.vipu.client import Connection
from openipu.vipu.api.addresses import ListenAddress
from openipu.vipu.domain.model import Put, RevokedKey, Role, User
from openipu.vipu.domain.state import State
from openipu.vipu.server.initialise import first_admin, initialise, register, run
from openipu.vipu.storage import migrations
from openipu.vipu.storage.store import Store, StoreError
from openipu.vipu.tls import issue, load, user_certificates
from tests.unit.vipu.storage.store_support import all_records, rack, spoil, write


def test_only_the_owner_can_read_it(store: Store) -> None:
    write(store, State(), *all_records(rack()))
    for file in store.path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_the_database_settings_make_commits_durable(store: Store) -> None:
    settings = {
        name: store._connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "synchronous", "foreign_keys")
    }
    assert settings == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


def test_one_process_at_a_time(store: Store) -> None:
    script = "import sys, pathlib; from openipu.vipu.storage.store import Store; Store(pathlib.Path(sys.argv[1]))"
    other = subprocess.run([sys.executable, "-c", script, str(store.path)], capture_output=True, text=True, timeout=30)
    assert other.returncode == 1
    assert other.stderr.strip().endswith(
        f"Cannot open database {str(store.path)!r}: another vipu-server uses it. "
        "Stop that one, or give another --database."
    )


def test_a_missing_database_is_not_created_by_accident(path: Path) -> None:
    with pytest.raises(
        StoreError, match=r"Cannot open database .*: it does not exist\. Create it with 'vipu-server --init"
    ):
        Store(path)
    assert not path.exists()
    path.touch()
    with pytest.raises(StoreError, match=r"it is empty\. Create it with 'vipu-server --init"):
        Store(path)


@pytest.mark.parametrize("create", [True, False])
def test_a_loop_of_links_is_an_error_with_a_remedy(tmp_path: Path, create: bool) -> None:
    for name, target in (("a.db", "b.db"), ("b.db", "a.db")):
        (tmp_path / name).symlink_to(target)
    with pytest.raises(StoreError) as caught:
        Store(tmp_path / "a.db", create=create)
    assert str(caught.value) == (
        f"Cannot open database '{tmp_path / 'a.db'}': Too many levels of symbolic links. "
        "Check the path and its permissions, or give another --database."
    )


def test_initialise_keeps_existing_records(store: Store) -> None:
    state = State()
    write(store, state, *all_records(rack()))
    path = store.path.with_name("again.db")
    store._connection.execute("VACUUM INTO ?", (str(path),))
    assert initialise(path) is False
    again = Store(path)
    assert again.load() == state
    again.close()


def test_first_admin_is_created_once(path: Path) -> None:
    initialise(path)
    written = first_admin(path, Connection("10.3.1.101", 8090), shared_certificate=True)
    assert written == path.parent / "admin.vipu-cli.hcl"
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    assert 'api-host="10.3.1.101"\napi-port=8090\napi-user-id="admin"\napi-access-key="' in written.read_text()
    assert first_admin(path, Connection("10.3.1.101", 8090), shared_certificate=True) is None
    opened = Store(path)
    assert [(user.id, user.role) for user in opened.load().users.values()] == [("admin", Role.ADMIN)]
    opened.close()


def test_the_first_admin_gets_no_revoked_key(path: Path) -> None:
    certs = path.parent / "certs"
    issue.create(certs, ["127.0.0.1"])
    initialise(path)
    certificate = load.client_files(certs)["client_cert"]
    key = user_certificates.fingerprint(Path(certificate).read_bytes())
    opened = Store(path)
    write(opened, opened.load(), Put(RevokedKey(key, "admin", "1f", 100)))
    opened.close()
    with pytest.raises(StoreError, match=r"its key was revoked\. Use a new key\."):
        first_admin(path, Connection("127.0.0.1", client_cert=certificate), shared_certificate=False)
    assert not (path.parent / "admin.vipu-cli.hcl").exists()


def test_users_of_a_certificate_of_the_administrator_are_reported(path: Path) -> None:
    certs = path.parent / "certs"
    issue.create(certs, ["127.0.0.1"])
    initialise(path)
    opened = Store(path)
    write(opened, opened.load(), *(Put(User(id, Role.USER, (), "hash", "salt", (), True)) for id in ("bob", "alice")))
    opened.close()
    others = "If others shared it, create certificates for them with 'vipu-admin create certificate': 'alice', 'bob'"
    written = list(run(path, ListenAddress("127.0.0.1", 8090), certs, shared_certificate=False))
    assert written[-1] == f"Only 'admin' can use its certificate now. {others}"
    registered = register(path, certs / "controller" / "controller.crt", None)
    assert registered.splitlines()[1:] == [f"Only 'admin' can use its certificate now. {others}"]


def test_a_newer_database_is_rejected(path: Path) -> None:
    initialise(path)
    spoil(path, "UPDATE alembic_version SET version_num = '9999'")
    before = path.read_bytes()
    with pytest.raises(
        StoreError,
        match=rf"it was written by a newer release \(version 9999, this release supports {migrations.HEAD}\)",
    ):
        Store(path)
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_of_the_controller_is_rejected(path: Path) -> None:
    spoil(path, "CREATE TABLE notes (text)")
    with pytest.raises(StoreError, match="it belongs to another program"):
        Store(path)
    path.write_text("This is a letter, and no database at all, however long it may be. " * 20)
    with pytest.raises(StoreError, match=r"Cannot use database .*: file is not a database"):
        Store(path)
    with pytest.raises(StoreError, match=r"Cannot open database .*: Is a directory\. Check the path"):
        Store(path.parent)


def test_a_database_in_a_missing_folder_is_not_created(path: Path) -> None:
    database = path.parent / "missing" / "vipu.db"
    with pytest.raises(StoreError) as error:
        Store(database, create=True)
    assert str(error.value) == (
        f"Cannot open database {str(database)!r}: folder {str(database.parent)!r} does not exist. "
        "Create the folder, or give another --database."
    )


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("DELETE FROM agents WHERE id = 'ag01'", "The cluster 'cl0' is invalid"),
        ("DELETE FROM cluster_agents WHERE agent = 'ag03'", "ag03"),
        ("UPDATE clusters SET topology = 'star'", "star"),
        ("UPDATE clusters SET num_ilds = 3", "cannot be divided evenly"),
        ("UPDATE partitions SET num_gcds = 3 WHERE id = 'eight'", "The partition 'eight' is invalid"),
        ("DELETE FROM partition_ipus WHERE partition = 'one'", "The partition 'one' is invalid: it has no IPUs"),
        ("DELETE FROM devices WHERE ipu = 2", "The partition 'eight' is invalid: it has 8 IPUs but 6 devices"),
        ("UPDATE partitions SET ready = 9", "9 is not a valid ReadyState"),
        ("UPDATE users SET role = 'emperor'", "emperor"),
        ("DROP TABLE devices", "no such table: devices"),
    ],
)
def test_a_damaged_database_is_rejected(store: Store, damage: str, message: str) -> None:
    write(store, State(), *all_records(rack()))
    spoil(store.path, damage)
    with pytest.raises(StoreError) as caught:
        store.load()
    assert message in str(caught.value)
    assert "Restore a backup" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_head_of_the_migrations_is_the_one_that_is_expected() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    assert ScriptDirectory.from_config(config).get_heads() == [migrations.HEAD]


def test_an_up_to_date_database_needs_no_alembic(store: Store) -> None:
    store.close()
    script = (
        "import sys, pathlib; from openipu.vipu.storage.store import Store; "
        "s = Store(pathlib.Path(sys.argv[1])); s.load(); "
        "s.close(); assert not {'alembic', 'sqlalchemy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script, str(store.path)], check=True, timeout=30)
    store.__init__(store.path)  # type: ignore[misc]
