# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of the pages about etcd and several controllers work as printed, in a network with their addresses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests import ROOT
from tests.docs.blocks import Block, blocks, commands
from tests.docs.shell import Shell, require_namespaces, run_block, run_page
from tests.ha.etcd_role import Applied

PAGE, ROLE = ROOT / "docs/how-to/high-availability.md", ROOT / "roles/etcd/README.md"
NODES = {f"n{number}": f"10.1.1.1{number}" for number in (1, 2, 3)}
FIRST = NODES["n1"]
PASSWORD = "of-etcd"

pytestmark = pytest.mark.timeout(400)


class Hosts:
    """A shell in the network of three hosts, in whose folder are the certificates that the role ``etcd`` creates."""

    def __init__(self, folder: Path) -> None:
        made = Applied(folder, NODES)
        assert made.apply()
        self.shell = Shell(made.authority, folder, {"TMPDIR": str(folder)})
        self.shell.keep_unchanged(folder / "changes", "/etc", "/var/lib")
        self.shell.run("mkdir -p /etc/openipu/etcd /etc/haproxy /var/lib/etcd /var/lib/vipu", 20)
        self.shell.run("for file in ca.crt n1.*; do cp $file /etc/openipu/etcd/${file/n1/node}; done", 20)
        for address in NODES.values():
            self.shell.run(f"ip address add {address} dev lo", 20)
        # On loopback, connections do not come from the address in the certificate.
        self.shell.run("export ETCD_EXPERIMENTAL_PEER_SKIP_CLIENT_SAN_VERIFICATION=true", 20)

    def close(self) -> None:
        self.shell.kill()
        self.shell.close()

    def start(self, block: Block) -> None:
        """Run a command that runs on, once for each host."""
        self.shell.run("started=", 20)
        for name, address in NODES.items():
            text = block.text.replace("name=n1", f"name={name}")
            text = re.sub(rf"(address=|--host ){FIRST}", rf"\g<1>{address}", text)
            run_block(replace(block, text=text), self.shell)
            self.shell.run('started+=" $!"', 20)

    def start_etcd(self, block: Block) -> None:
        self.start(block)
        get = "curl --silent --fail --cacert ca.crt --cert client.crt --key client.key"
        for address in NODES.values():
            retry = "--retry 60 --retry-delay 1 --retry-all-errors"
            self.shell.run(f"{get} {retry} https://{address}:2379/health || (cat background.log; false)", 90)

    def start_controllers(self, block: Block) -> None:
        self.start(block)
        for address in NODES.values():
            self.shell.run(f"vipu-server health --secure --host {address} --standby --wait 60", 90)

    def stop_controllers(self) -> None:
        self.shell.run("kill $started; wait $started", 60)


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    require_namespaces()
    made = Hosts(tmp_path)
    yield made
    made.close()


def test_the_commands_of_the_role_etcd_work(hosts: Hosts) -> None:
    hosts.start_etcd(commands(PAGE)[0])
    run_page(ROLE, hosts.shell)


def test_the_commands_of_the_page_work(hosts: Hosts) -> None:
    shell = hosts.shell
    etcd, users, files, variables, create, controllers, migrate, back, client, haproxy, restore = (
        block for block in commands(PAGE) if not block.not_run
    )
    hosts.start_etcd(etcd)
    run_block(replace(users, text=_with_passwords(users.text)), shell)
    shell.run(f"echo {PASSWORD} >password", 20)
    shell.run("export VIPU_SERVER_STORE_USER=vipu VIPU_SERVER_STORE_PASSWORD_FILE=$PWD/password", 20)
    for block in (files, variables, create):
        run_block(block, shell)
    keys = "/etc/vipu/etcd/client.key /etc/vipu/certs/{ca,users}/ca.key"
    assert shell.run(f"stat --format %a {keys}", 20).split() == ["600"] * 3
    hosts.start_controllers(controllers)
    run_block(client, shell)
    shell.run("vipu-server backup backup.tar.gz", 60)

    hosts.stop_controllers()
    shell.run(f"etcdctl --user root:{PASSWORD} del --prefix /openipu/vipu/", 20)
    options = "--secure --host 10.1.1.11 --database /var/lib/vipu/vipu-server.db"
    shell.run(f"env --unset VIPU_SERVER_STORE vipu-server --init {options}", 20)
    for block in (migrate, back):
        run_block(block, shell)

    hosts.start_controllers(controllers)
    shell.run("pushd /var/lib/vipu", 20)  # the file of the administrator is next to the database
    run_block(client, shell)
    shell.run("popd", 20)

    shell.run("pushd /etc/vipu/certs", 20)
    run_block(haproxy, shell)
    assert shell.run("stat --format %a /etc/haproxy/vipu-client.pem", 20) == "600\n"
    (configuration,) = (block.text for block in blocks(PAGE) if block.text.startswith("defaults\n"))
    shell.run(f"haproxy -c -f /dev/stdin <<'END'\n{configuration}END\npopd", 20)

    hosts.stop_controllers()
    run_block(restore, shell)
    shell.run("test -e /etc/vipu/certs.before-restore/ca/ca.key", 20)
    hosts.start_controllers(controllers)
    run_block(client, shell)


def _with_passwords(text: str) -> str:
    """Return commands, with the lines that a user enters after them."""
    return re.sub(r"(?m)^(etcdctl user add \w+\n)", rf"\g<1>{PASSWORD}\n{PASSWORD}\n", text)
