# SPDX-License-Identifier: GPL-3.0-or-later
"""Switches and PDUs of a rack twin, in the process of its machines.

``rack_devices.RackDevices`` is the entry point. ``eos`` is an Arista switch with eAPI, ``pdu`` an APC PDU with SNMP.
They do not import each other. ``rack_switch`` and ``rack_pdu`` add power and faults.
"""
