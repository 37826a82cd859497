# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: ini_merged
short_description: Text of an INI file of OpenStack with settings added
version_added: 0.1.0
author:
  - openipu.pod contributors (@openipu)
description:
  - Adds settings to the text of an INI file. All other settings, comments, the order of lines and template expressions are kept.
  - Fails if an option of the settings, or the section that needs a new option, is inside a template statement such as C({% if %}). The option may
    have several values then, which the filter cannot merge.
positional: _input, settings
options:
  _input:
    description: Text of the file. Empty for a new file.
    type: str
    required: true
  settings:
    description:
      - Settings, each with C(section), C(option), and one of the following keys.
      - C(value) replaces the value. C(default) is used only if the option has no value. C(minimum) replaces a smaller number.
      - C(items) are added to a list with commas. C(initial) is the list if the option has no value.
      - C(pairs), a dictionary, sets C(name:value) in a list with commas. With C(keep), names in the list keep their values.
      - C(objects), a list of dictionaries, are added as JSON, one value of the option for each.
    type: list
    elements: dict
    required: true
  inherited:
    description:
      - Texts of files that this file overrides, the strongest last. If the option has no value in the file, settings are added to its values in
        these files.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Show a file with another extension driver
  ansible.builtin.debug:
    msg: "{{ lookup('ansible.builtin.file', '/etc/kolla/config/neutron/ml2_conf.ini') | openipu.pod.ini_merged(settings) }}"
  vars:
    settings:
      - {section: ml2, option: extension_drivers, items: [port_security]}
"""

RETURN = r"""
_value:
  description: Text of the file with the settings.
  type: str
"""

import typing as t

from ansible.errors import AnsibleFilterError

from ansible_collections.openipu.pod.plugins.plugin_utils.ini_text import ConditionalOptionError, merge


def ini_merged(text: t.Any, settings: list[dict[str, t.Any]], inherited: t.Sequence[str] = ()) -> str:
    if not isinstance(text, str):
        raise AnsibleFilterError("ini_merged: the input is not a text. Pass the content of an INI file.")
    try:
        return merge(text, settings, inherited)
    except ConditionalOptionError as error:
        raise AnsibleFilterError(f"ini_merged: {error}") from error
    except (KeyError, ValueError) as error:
        raise AnsibleFilterError(
            f"ini_merged: invalid settings: {error}. See the documentation of the filter."
        ) from error


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"ini_merged": ini_merged}
