# SPDX-License-Identifier: GPL-3.0-or-later
"""MariaDB and RabbitMQ from packages of the distribution, run by any user, without systemd."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from openipu.process.background import ProcessError

from .component import Process, base_environment
from .probes import accepts_connections, sends_greeting
from .site import PORTS, Site

RABBITMQ = "/usr/lib/rabbitmq/bin/rabbitmq-server"
AMQP = b"AMQP\x00\x00\x09\x01"

# The data is removed with the cloud, so it need not survive a power failure.
MARIADB = [
    "--no-defaults",
    "--skip-name-resolve",
    "--character-set-server=utf8mb3",
    "--max-connections=500",
    "--innodb-buffer-pool-size=128M",
    "--innodb-log-file-size=16M",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-doublewrite=0",
]


def check_installed() -> None:
    """Raise ProcessError when a package is missing."""
    path = base_environment()["PATH"]
    needed = {"mariadbd": "mariadb-server", "mariadb-install-db": "mariadb-server", RABBITMQ: "rabbitmq-server"}
    missing = {package for program, package in needed.items() if not shutil.which(program, path=path)}
    if missing:
        names = " ".join(sorted(missing))
        raise ProcessError(
            f"Cannot start OpenStack: not installed: {names}. Run: apt install --no-install-recommends {names}"
        )


def processes(site: Site) -> list[Process]:
    """Return the processes that all others depend on, in the order of their start."""
    return [mariadb(site), *rabbitmq(site)]


def mariadb(site: Site, *options: str) -> Process:
    """Return the database server. The path of its socket is relative to its data, because such paths must be short."""
    command = ["mariadbd", *MARIADB, *_mariadb_user(), *options]
    command += [f"--datadir={site.data / 'mysql'}", "--socket=mysql.sock", f"--pid-file={site.run / 'mariadbd.pid'}"]
    command += [f"--bind-address={site.address}", f"--port={PORTS['mariadb']}"]
    return Process("mariadb", command, {}, [PORTS["mariadb"]], sends_greeting(site.address, PORTS["mariadb"]))


def create_databases(site: Site, names: Iterable[str]) -> Process:
    """Create the data folder of MariaDB. Return the server that creates empty databases when it starts."""
    data = site.data / "mysql"
    command = ["mariadb-install-db", "--no-defaults", "--skip-test-db", *_mariadb_user(), f"--datadir={data}"]
    log = site.log / "mariadb.log"
    with log.open("wb") as output:
        done = subprocess.run(command, env=base_environment(), stdout=output, stderr=output, check=False)  # noqa: S603  command of this tool
    if done.returncode:
        raise ProcessError(f"Cannot create the system tables of MariaDB: see {log}.")
    statements = [f"CREATE DATABASE {name};" for name in names]
    statements.append(f"CREATE USER openstack@'127.%' IDENTIFIED BY '{site.secrets.database}';")
    statements.append("GRANT ALL ON *.* TO openstack@'127.%';")
    script = site.etc / "databases.sql"
    script.touch(mode=0o600)
    script.write_text("\n".join(statements) + "\n")
    return mariadb(site, f"--init-file={script}")


def _mariadb_user() -> list[str]:
    """Return the option that MariaDB requires to run as root."""
    return ["--user=root"] if os.geteuid() == 0 else []


def rabbitmq(site: Site) -> list[Process]:
    """Return the message queue and its port mapper, which would otherwise outlive it."""
    config = site.etc / "rabbitmq"
    config.mkdir(parents=True, exist_ok=True)
    home = site.data / "rabbitmq"
    home.mkdir(parents=True, exist_ok=True)
    _write_private(
        config / "rabbitmq.conf",
        f"listeners.tcp.1 = {site.address}:{PORTS['rabbitmq']}\n"
        f"default_user = openstack\ndefault_pass = {site.secrets.queue}\n"
        "vm_memory_high_watermark.relative = 0.2\ndisk_free_limit.absolute = 50MB\n",
    )
    (config / "enabled_plugins").write_text("[].\n")
    (config / "rabbitmq-env.conf").write_text("")
    octets = site.address.replace(".", ",")
    environment = {
        "HOME": str(home),
        "ERL_EPMD_ADDRESS": site.address,
        "ERL_EPMD_PORT": str(PORTS["epmd"]),
        "RABBITMQ_CONF_ENV_FILE": str(config / "rabbitmq-env.conf"),
        "RABBITMQ_CONFIG_FILE": str(config / "rabbitmq.conf"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(config / "enabled_plugins"),
        "RABBITMQ_DIST_PORT": str(PORTS["erlang"]),
        "RABBITMQ_LOG_BASE": str(site.log),
        "RABBITMQ_MNESIA_BASE": str(home),
        "RABBITMQ_NODENAME": "openipu@localhost",
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": f"-kernel inet_dist_use_interface {{{octets}}} +sbwt none +S 1:1",
    }
    epmd = ["epmd", "-address", site.address, "-port", str(PORTS["epmd"])]
    return [
        Process("epmd", epmd, {}, [PORTS["epmd"]], accepts_connections(site.address, PORTS["epmd"])),
        Process(
            "rabbitmq",
            [RABBITMQ],
            environment,
            [PORTS["rabbitmq"], PORTS["erlang"]],
            sends_greeting(site.address, PORTS["rabbitmq"], AMQP),
        ),
    ]


def _write_private(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)
