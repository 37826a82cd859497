# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible never renders a template in a variable of the inventory plugin, also in its oldest supported release."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.unit.collection.pod import inventories

TEMPLATE, RENDERED = "{{ 7 * 191 }}", "1337"
# Results of templates with the variable, which later templates use again.
PLAY = """
- hosts: m1.1
  gather_facts: false
  vars:
    nested: "{{ NAME }}"
    joined: "{{ [NAME, NAME] | join(' ') }}"
    other_host: "{{ hostvars['m1.2'].NAME }}"
    this_host: "{{ vars_of_host.NAME }}"
    vars_of_host: "{{ hostvars['m1.1'] }}"
  tasks:
    - ansible.builtin.set_fact:
        fact: "{{ nested }} {{ joined }} {{ other_host }} {{ this_host }} {{ [composed] | first }}"
    - ansible.builtin.debug: {msg: "{{ fact }} {{ hostvars['m1.1'].fact | upper }} {{ item }}"}
      loop: ["{{ NAME }}", "{{ fact }}", "{{ {'key': nested}.key }}"]
    - ansible.builtin.copy: {content: "{{ fact }} {{ NAME | to_json }}", dest: "FOLDER/written", mode: "0600"}
    - ansible.builtin.debug: {msg: "{{ lookup('template', 'FOLDER/page.j2') }}"}
"""
COMPOSED = "compose: {composed: \"'text ' ~ pod_rack ~ pod_serial\"}\n"
SERIAL = "8203921-0101"
INTERPRETER = f"ansible_python_interpreter={sys.executable}"


def run(program: str, *arguments: str | Path) -> str:
    done = inventories.run(program, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def play(folder: Path, inventory: Path, name: str) -> str:
    """Return the output of the play, and the file that it wrote."""
    (folder / "page.j2").write_text(f"{{{{ {name} }}}} {{{{ nested }}}}")
    (folder / "play.yml").write_text(PLAY.replace("NAME", name).replace("FOLDER", str(folder)))
    output = run("ansible-playbook", "-i", inventory, folder / "play.yml", "--connection", "local", "-e", INTERPRETER)
    return output + (folder / "written").read_text()


def rows(pod) -> list[str]:
    header, *machines = pod.machines_csv.read_text().splitlines()
    return [f"{header},serial", *(f"{line},{SERIAL}{'-' * number}" for number, line in enumerate(machines))]


def test_template_in_the_path_of_the_files_is_not_rendered(pod, tmp_path):
    pod.write()
    machines = rows(pod)
    pod.write(rows=machines, tail=COMPOSED)
    folder = tmp_path / TEMPLATE
    folder.mkdir()
    for file in (pod.pod_yml, pod.machines_csv):
        file.rename(folder / file.name)
    output = play(tmp_path, folder / "pod.yml", "pod_file")
    assert TEMPLATE in output
    assert RENDERED not in output


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [("pod_serial", "pod_serial", SERIAL), ("pod_name", "pod_name", "test"), ("vipu_pod_clusters[0].id", "id", "cl")],
)
def test_template_in_the_cache_is_not_rendered(pod, tmp_path, name, key, value):
    store = tmp_path / "cache"
    pod.write()
    cache = f"cache: true\ncache_plugin: ansible.builtin.jsonfile\ncache_connection: {store}\n"
    pod.write(rows=rows(pod), tail=COMPOSED + cache)
    run("ansible-inventory", "-i", pod.pod_yml, "--list")
    (entry,) = store.iterdir()
    # Some releases keep the data as a string inside the JSON document.
    text, cached = re.subn(rf'({key}\\*": \\*"){value}', rf"\g<1>{TEMPLATE}", entry.read_text())
    assert cached
    entry.write_text(text)
    output = play(tmp_path, pod.pod_yml, name)
    assert TEMPLATE in output
    assert RENDERED not in output
