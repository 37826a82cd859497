# SPDX-License-Identifier: GPL-3.0-or-later
"""Twin of an Arista EOS switch: configuration, `show` commands and eAPI.

`server.serve` starts the eAPI server of a `switch.Switch`. `cli.Cli` runs commands, `config` has the configuration
language and its sessions, and `show` the `show` commands. `forwarding` computes the state of ports from configuration
and cabling. Text, JSON keys and errors are those of EOS.
"""
