# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: gzip_base64
short_description: Compress text, for files of cloud-init
version_added: 0.1.0
author:
  - openipu.pod contributors (@openipu)
description:
  - Compresses text with gzip, and encodes the result in Base64. The result depends on the text only.
  - This is the encoding C(gz+b64) of C(write_files) in cloud-init. User data in Nova are limited to 64 KiB.
positional: _input
options:
  _input:
    description: Text.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Write user data
  ansible.builtin.copy:
    dest: user-data.yml
    mode: "0644"
    content: "#cloud-config\n{{ {'write_files': [{'path': '/etc/motd', 'encoding': 'gz+b64', 'content': text | openipu.pod.gzip_base64}]} | to_json }}"
  vars:
    text: "{{ lookup('ansible.builtin.file', 'motd') }}"
"""

RETURN = r"""
_value:
  description: Compressed text in Base64, without line breaks.
  type: str
"""

import base64
import gzip
import typing as t


def gzip_base64(text: str) -> str:
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"gzip_base64": gzip_base64}
