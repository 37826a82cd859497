# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the content of the image."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.utils import canonicalize_name

from tests import ROOT
from tools.ee.collection import write_archive
from tools.ee.image import ensure_image
from tools.ee.wheels import LOCK, locked

COLLECTIONS = "/usr/share/ansible/collections/ansible_collections"
COLLECTION = f"{COLLECTIONS}/openipu/pod"


def test_the_image_has_exactly_this_collection(in_container, tmp_path):
    found = json.loads(in_container("ansible-galaxy collection list --format json 2>/dev/null"))
    release = yaml.safe_load((ROOT / "galaxy.yml").read_text())["version"]
    assert found[COLLECTIONS] == {"openipu.pod": {"version": release}}
    archive = tmp_path / "collection.tar.gz"
    write_archive(archive)
    with tarfile.open(archive) as content:
        member = content.extractfile("FILES.json")
        assert member
        expected = member.read()
    assert in_container(f"sha256sum {COLLECTION}/FILES.json").split()[0] == hashlib.sha256(expected).hexdigest()
    in_container(f"ansible-galaxy collection verify openipu.pod --offline -p {COLLECTIONS}")
    names = {entry["name"] for entry in json.loads(expected)["files"]}
    assert "roles/ipu_operator/files/ipu-operator-chart.tgz" in names
    assert [name for name in names if name.startswith("roles/openipu/files/openipu-") and name.endswith(".whl")]


def test_the_wheel_in_the_archive_is_complete(tmp_path):
    """Roles install it on hosts. A folder of its sources is a link."""
    archive = tmp_path / "collection.tar.gz"
    write_archive(archive)
    with tarfile.open(archive) as content:
        [wheel] = [name for name in content.getnames() if name.endswith(".whl")]
        member = content.extractfile(wheel)
        assert member
        names = zipfile.ZipFile(io.BytesIO(member.read())).namelist()
    sources = {"openipu": ROOT / "src" / "openipu", "openipu/shared": ROOT / "plugins" / "module_utils"}
    expected = {
        f"{package}/{path.relative_to(folder).as_posix()}"
        for package, folder in sources.items()
        for path in folder.rglob("*.py")
    }
    assert sorted(expected - set(names)) == []


def test_the_python_packages_are_those_of_the_lock(in_container):
    folder = "/usr/local/lib/python3.11/dist-packages"
    listing = json.loads(in_container(f"python3 -m pip list --format json --path {folder}"))
    assert {canonicalize_name(each["name"]): each["version"] for each in listing} == locked(LOCK)
    in_container("python3 -m pip check")


@pytest.mark.parametrize(
    "command",
    ["ansible-runner --version", "git --version", "ssh -V", "ssh-agent true", "sshpass -V", "helm version"],
)
def test_the_image_has_the_programs_of_playbooks(in_container, command):
    in_container(command)


def test_the_image_has_kubectl(in_container):
    assert "Client Version" in in_container("kubectl version --client")


def test_the_image_has_no_files_of_the_build(in_container):
    folders = (
        "~root/.[ac]* /output /build /tmp/* /mnt/* /etc/pip.conf /var/lib/apt/lists/*_* /var/cache/apt/archives/*.deb"
    )
    script = f"ls -d {folders} /etc/apt/apt.conf.d/*mmdebstrap 2>/dev/null || true; env | grep ^PIP_CONFIG || true"
    assert in_container(script, user="0:0") == ""


def test_the_image_has_no_secrets(in_container):
    names = " -o ".join(f"-name '{name}'" for name in ("id_*", "ssh_host_*", "*.key", ".netrc", "auth.json"))
    assert in_container(f"find / -xdev -type f \\( {names} \\)", user="0:0") == ""
    # The documentation of modules has the word in examples.
    folders = "/etc /home /opt /root /runner /srv /var"
    assert in_container(f"grep -rIl -e '^-----BEGIN .*PRIVATE KEY-----$' {folders} || true", user="0:0") == ""


@pytest.mark.parametrize("user", ["1000:0", "123456:0"])
def test_any_user_of_group_0_can_run_jobs(in_container, user):
    lines = in_container(
        "id -u; id -g; echo $HOME; touch /runner/project; mkdir ~/.ssh ~/.ansible; id -un >/dev/null; "
        "ansible localhost -m ansible.builtin.ping -o",
        user,
    ).splitlines()
    assert lines[:3] == [*user.split(":"), "/runner"]
    assert "SUCCESS" in lines[3]


def test_an_unchanged_image_is_not_built_again(image):
    reports: list[str] = []
    assert ensure_image(reports.append) == image
    assert [line.partition(":")[0] for line in reports] == ["Execution environment 'localhost/openipu/pod-ee'"]
    assert Path(image.store).exists()
