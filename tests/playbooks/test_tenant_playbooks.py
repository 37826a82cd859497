# SPDX-License-Identifier: GPL-3.0-or-later
"""Users and orders of tenants on a secure controller, with the environment that the credential type of AWX makes."""

from __future__ import annotations

import json
import os
import pwd
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml
from jinja2 import StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from tests import ROOT
from tests.integration.bringup.own_twin import BIN, changed
from tests.integration.vipu_servers import Machines, Process
from tests.integration.vipu_servers import run as run_server
from tests.unit.collection.awx.content import load, named
from tests.workflow_jobs import HostJobs
from tools.ee.jobs import Launch

ACCOUNT = pwd.getpwuid(os.geteuid()).pw_name
KEY = "alice.vipu-cli.hcl"
ORDER = {"order_team": "research", "order_user": "alice", "order_name": "nlp", "order_ipus": "4"}


@dataclass
class Pod:
    """A secure controller with agents, an inventory, and the environment of a job."""

    folder: Path
    environment: dict[str, str]

    @property
    def keys(self) -> Path:
        return self.folder / "keys"

    def run(self, playbook: str, *options: str, check: bool = True, **variables: Any) -> str:
        """Run a playbook with everything that it could print, and return its output."""
        settings = {"user_key_folder": str(self.keys), "user_key_account": ACCOUNT, **variables}
        done = subprocess.run(
            [
                *(BIN / "ansible-playbook", ROOT / "playbooks" / playbook, "-i", self.folder / "hosts.yml"),
                *("-e", json.dumps(settings), "-vvv", "--diff", *options),
            ],
            env={**self.environment, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "HOME": str(self.folder)},
            capture_output=True,
            text=True,
            timeout=300,
        )
        output = done.stdout + done.stderr
        assert (done.returncode == 0) is check, output
        assert "Traceback" not in output
        for secret in self.secrets():
            assert secret not in output
        assert not list(self.folder.glob("tmp/vipu-user.*")), "the temporary folder of a key remained"
        return output

    def secrets(self) -> list[str]:
        """Return the access keys and the private keys that exist."""
        files = [*self.keys.glob("*.key"), *self.keys.glob("*.hcl")]
        texts = [file.read_text() for file in files]
        keys = [key for text in texts for key in re.findall('api-access-key="(.*)"', text)]
        return [*keys, *(text.splitlines()[1] for text in texts if "PRIVATE KEY" in text)]

    def vipu(self, *arguments: str) -> Any:
        """Return what ``vipu`` prints for the user, with no setting but its file."""
        done = subprocess.run(
            [BIN / "vipu", "--config", self.keys / KEY, *arguments, "-o", "json"],
            env={"PATH": os.environ["PATH"], "HOME": str(self.folder)},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def controller(self, subset: str) -> dict[str, Any]:
        """Return the objects of a kind by ID."""
        done = subprocess.run(
            [
                *(BIN / "ansible", "controllers", "-i", self.folder / "hosts.yml", "-m", "openipu.pod.vipu_info"),
                *("-a", f"gather_subset={subset} api_host={{{{ vipu_api_host }}}} api_port={{{{ vipu_api_port }}}}"),
            ],
            env={**self.environment, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "HOME": str(self.folder)},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        found = yaml.safe_load(done.stdout.partition("=>")[2])
        return {each["id"]: each for each in found[subset]}


def job_environment(folder: Path, inputs: dict[str, str]) -> dict[str, str]:
    """Return the environment of a job with a credential of the type V-IPU controller, made as by AWX."""
    injectors = named(load().credential_types)["V-IPU controller"]["injectors"]
    render = ImmutableSandboxedEnvironment(undefined=StrictUndefined).from_string
    names = {}
    for name, template in injectors["file"].items():
        file = folder / name
        file.touch(mode=0o600)
        file.write_text(render(template).render(inputs))
        names[name.removeprefix("template.")] = str(file)
    namespace = {**inputs, "tower": {"filename": names}}
    return {name: render(template).render(namespace) for name, template in injectors["env"].items()}


@pytest.fixture
def agents() -> Iterator[Machines]:
    """Yield machines of this test alone. Shared ones would keep the partitions of other controllers."""
    made = Machines(4)
    yield made
    made.stop()


@pytest.fixture
def secure(vipu_process: Callable[..., Process], agents: Machines, tmp_path: Path) -> Pod:
    certs = tmp_path / "certs"
    made = run_server("--tls-init", str(certs), "--init", "--secure", "--database", str(tmp_path / "vipu-server.db"))
    assert made.returncode == 0, made.stderr
    server = vipu_process("--secure", "--certs", str(certs), channel=grpc.ssl_channel_credentials())
    host, port = server.address.rsplit(":", 1)
    key = re.search('api-access-key="(.*)"', (tmp_path / "admin.vipu-cli.hcl").read_text())
    assert key
    files = {"ca": "ca.crt", "certificate": "client.crt", "client_key": "client.key"}
    inputs = {name: (certs / "client" / file).read_text() for name, file in files.items()}
    job, temporary = tmp_path / "job", tmp_path / "tmp"
    job.mkdir()
    temporary.mkdir()
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("VIPU_", "ANSIBLE_"))}
    environment = {
        **inherited,
        **job_environment(job, {"user": "admin", "access_key": key[1], **inputs}),
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "TMPDIR": str(temporary),
        "ANSIBLE_REMOTE_TEMP": str(tmp_path / "remote"),
        "ANSIBLE_NOCOLOR": "true",
    }
    machines = [{"id": agent.id, "host": agent.host, "port": agent.port, "take_over": True} for agent in agents.agents]
    ids = [machine["id"] for machine in machines]
    variables = {
        "ansible_connection": "local",
        "ansible_become": False,
        "ansible_python_interpreter": sys.executable,
        "pod_name": "test",
        "vipu_api_host": host,
        "vipu_api_port": int(port),
        "vipu_connection": {"api_host": host, "api_port": int(port)},
        "pod_teams": {"research": {"ipus": 16}, "production": {"ipus": 64}},
        "vipu_pod_agents": machines,
        "vipu_pod_clusters": [{"id": "cl0", "agents": ids, "topology": "torus"}],
        "vipu_pod_allocations": [{"id": "team-a", "cluster": "cl0", "size": 1}],
    }
    inventory = {"all": {"vars": variables, "children": {"controllers": {"hosts": {"mgmt": {}}}}}}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump(inventory))
    pod = Pod(tmp_path, environment)
    pod.run("vipu_objects.yml")
    return pod


def test_a_user_gets_its_key_on_a_host_and_nowhere_else(secure: Pod) -> None:
    user = {"user_id": "alice", "user_allocations": "team-a"}
    secure.run("user_create.yml", "--check", **user)
    assert not secure.keys.exists()
    assert "alice" not in secure.controller("users")
    output = secure.run("user_create.yml", **user)
    assert f"key: mgmt:{secure.keys}/{KEY}" in output
    assert sorted(file.name for file in secure.keys.iterdir()) == [
        *("alice.ca.crt", "alice.crt", "alice.key", KEY),
    ]
    assert {file.stat().st_mode & 0o777 for file in secure.keys.iterdir()} == {0o600}
    assert secure.vipu("list", "partitions") == []
    before = (secure.keys / KEY).read_text()
    assert str(secure.keys) in before and "vipu-user." not in before
    assert changed_of(secure.run("user_create.yml", **user)) == 0
    assert changed_of(secure.run("user_create.yml", user_id="alice", user_allocations=[])) == 1
    assert (secure.keys / KEY).read_text() == before
    assert changed_of(secure.run("user_remove.yml", user_id="alice")) == 2
    assert not list(secure.keys.iterdir())
    assert "alice" not in secure.controller("users")
    assert changed_of(secure.run("user_remove.yml", user_id="alice")) == 0


def test_a_user_without_an_account_or_a_place_for_its_key_is_not_created(secure: Pod) -> None:
    output = secure.run("user_create.yml", user_id="alice", user_key_account="no-such-account", check=False)
    assert "mgmt has no account 'no-such-account' for the access key." in " ".join(output.split())
    assert "alice" not in secure.controller("users")
    secure.keys.write_text("no folder")
    output = secure.run("user_create.yml", user_id="alice", check=False)
    assert "Cannot give user 'alice' a key:" in output
    assert "alice" not in secure.controller("users")


def test_a_tenant_orders_and_returns_ipus_within_the_quota(secure: Pod) -> None:
    secure.run("ipu_order.yml", "--check", **ORDER)
    assert set(secure.controller("allocations")) == {"team-a"}
    output = secure.run("ipu_order.yml", **ORDER)
    assert "Partition research.nlp with 4 IPUs is ready." in output
    (partition,) = secure.vipu("list", "partitions")
    assert "research.nlp" in partition.values()
    assert secure.controller("users")["alice"] == {"id": "alice", "role": "user", "allocations": ["research.nlp"]}
    assert changed_of(secure.run("ipu_order.yml", **ORDER)) == 0
    text = " ".join(secure.run("ipu_order.yml", **{**ORDER, "order_ipus": "8"}, check=False).split())
    assert "Cannot change order 'nlp' from 4 to 8 IPUs" in text
    text = " ".join(
        secure.run("ipu_order.yml", **{**ORDER, "order_name": "big", "order_ipus": "16"}, check=False).split()
    )
    assert "Cannot order 16 IPUs for team 'research': its other orders occupy 4 of 16 IPUs" in text
    assert set(secure.controller("allocations")) == {"team-a", "research.nlp"}
    secure.run("ipu_order.yml", **{**ORDER, "order_name": "more", "order_ipus": "1"})
    assert set(secure.controller("users")["alice"]["allocations"]) == {"research.more", "research.nlp"}
    assert changed_of(secure.run("ipu_return.yml", order_team="research", order_name="nlp")) == 2
    assert changed_of(secure.run("ipu_return.yml", order_team="research", order_name="nlp")) == 0
    assert secure.controller("users")["alice"]["allocations"] == ["research.more"]


def test_a_webhook_gets_the_access_data_of_an_order_without_secrets(secure: Pod) -> None:
    site = {"user_key_folder": str(secure.keys), "user_key_account": ACCOUNT}
    jobs = HostJobs(
        secure.folder, secure.folder / "hosts.yml", site, secure.environment, load(awx_tenant_quota="research")
    )
    job = jobs.launch("Order IPUs", Launch(answers={"order_name": "nlp", "order_ipus": "4"}, user="alice"))
    assert job.status == "successful", job.stdout
    [webhook] = jobs.sent
    assert isinstance(webhook.body, dict)
    access = webhook.body["results"]["order_access"]
    assert (webhook.name, access["partition"], access["user"]) == ("POD results (webhook)", "research.nlp", "alice")
    assert (secure.keys / KEY).is_file()
    for secret in secure.secrets():
        assert secret not in str(webhook)


def test_only_an_administrator_grants_all_allocations(secure: Pod) -> None:
    def allocations() -> list[str]:
        granted: list[str] = secure.controller("users")["alice"]["allocations"]
        return granted

    secure.run("user_create.yml", user_id="alice")
    assert allocations() == []
    secure.run("user_create.yml", user_id="alice", user_allocations="*")
    assert allocations() == ["*"]
    assert changed_of(secure.run("user_create.yml", user_id="alice")) == 0
    secure.run("ipu_order.yml", **ORDER)
    assert allocations() == ["*"]


def test_a_failed_order_leaves_nothing(secure: Pod) -> None:
    output = secure.run("ipu_order.yml", **{**ORDER, "order_ipus": "3"}, check=False)
    assert "Cannot create order 'nlp':" in output
    assert set(secure.controller("allocations")) == {"team-a"}
    output = secure.run("ipu_order.yml", **ORDER, user_key_account="no-such-account", check=False)
    assert "no-such-account" in output
    assert set(secure.controller("allocations")) == {"team-a"}
    assert set(secure.controller("users")) == {"admin"}


def test_invalid_orders_are_rejected(secure: Pod) -> None:
    without_size = {name: value for name, value in ORDER.items() if name != "order_ipus"}
    invalid = (
        *({"order_team": "other"}, {"order_name": "a.b"}, {"order_name": "../x"}, {"order_user": "a b"}),
        *({"order_name": "nlp\n"}, {"order_user": "alice\n"}),
    )
    for settings in (without_size, *({**ORDER, **each} for each in invalid)):
        output = secure.run("ipu_order.yml", **settings, check=False)
        assert "Cannot order IPUs: order_team (a name in 'teams'" in output
    for playbook in ("user_create.yml", "user_remove.yml"):
        assert "user_id (letters, digits," in secure.run(playbook, user_id="alice\n", check=False)
    output = secure.run("ipu_return.yml", order_team="research", order_name="nlp\n", check=False)
    assert "Cannot return IPUs: order_team (a name in 'teams'" in output
    assert set(secure.controller("allocations")) == {"team-a"}


def changed_of(output: str) -> int:
    """Return the number of changed tasks of a run."""
    return changed(subprocess.CompletedProcess([], 0, output.rpartition("PLAY RECAP")[2], ""))
