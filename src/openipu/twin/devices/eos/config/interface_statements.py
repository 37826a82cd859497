# SPDX-License-Identifier: GPL-3.0-or-later
"""Statements of interfaces, by kind of interface; the other statements are in `statements`."""

from __future__ import annotations

from openipu.twin.devices.eos.config.language import Mode, Statement
from openipu.twin.devices.eos.config.language import statement as _s

_QUEUE = (
    _s("priority strict", off="no priority", slot="priority"),
    _s("bandwidth percent <1-100>", full="no bandwidth percent"),
    _s("bandwidth guaranteed percent <1-100>", "bandwidth guaranteed <1-100000000> [kbps|pps]"),
    _s("shape rate <1-100000000> [kbps|pps|percent]", full="no shape rate"),
    _s(
        "random-detect ecn minimum-threshold <1-52428800> bytes|kbytes|mbytes|segments|microseconds|milliseconds "
        "maximum-threshold <1-52428800> bytes|kbytes|mbytes|segments|microseconds|milliseconds "
        "[max-mark-probability <1-100>] [weight <0-15>]",
        slot="random-detect ecn",
    ),
    _s("random-detect ecn count"),
    _s(
        "random-detect drop minimum-threshold <1-52428800> bytes|kbytes|mbytes|segments "
        "maximum-threshold <1-52428800> bytes|kbytes|mbytes|segments drop-probability <1-100> [weight <0-15>]",
        slot="random-detect drop",
    ),
)
_QUEUES = (
    Mode(("tx-queue <0-7>*",), _QUEUE, hide_empty=True),
    Mode(("uc-tx-queue <0-9>*",), _QUEUE, hide_empty=True),
    Mode(("mc-tx-queue <0-9>*",), _QUEUE, hide_empty=True),
)
QOS = (
    _s("service-policy type qos input WORD"),
    _s("service-profile WORD"),
    _s("qos trust cos|dscp", full="default qos trust"),
    _s("qos cos <0-7>"),
    _s("qos dscp <0-63>"),
    _s("shape rate <1-100000000> [kbps|pps|percent]", full="no shape rate"),
    *_QUEUES,
)
PFC = (
    _s("priority-flow-control on", full="no priority-flow-control", slot="priority-flow-control"),
    _s("priority-flow-control priority <0-7>* no-drop", "priority-flow-control priority <0-7>* drop"),
    _s("priority-flow-control pause watchdog"),
    _s("priority-flow-control pause watchdog port action drop|errdisable|notify-only"),
    _s(
        "priority-flow-control pause watchdog port timer timeout NUM "
        "[polling-interval auto] [recovery-time NUM] [forced]",
        "priority-flow-control pause watchdog port timer timeout NUM polling-interval NUM recovery-time NUM [forced]",
        slot="priority-flow-control pause watchdog port timer",
    ),
)
_SWITCHPORT = (
    _s("switchport access vlan VLAN", default="switchport access vlan 1", full="switchport access vlan 1"),
    _s(
        "switchport trunk native vlan VLAN",
        "switchport trunk native vlan tag",
        default="switchport trunk native vlan 1",
        full="switchport trunk native vlan 1",
        slot="switchport trunk native vlan",
    ),
    _s(
        "switchport trunk allowed vlan VLANS",
        "switchport trunk allowed vlan none|all",
        "switchport trunk allowed vlan add|remove|except VLANS",
        default="switchport trunk allowed vlan 1-4094",
        full="switchport trunk allowed vlan 1-4094",
        rule="allowed_vlans",
    ),
    _s(
        "switchport mode access|trunk|dot1q-tunnel|trunk-phone",
        default="switchport mode access",
        full="switchport mode access",
    ),
    _s("switchport trunk group WORD*"),
    _s("switchport", off="no switchport", full="switchport"),
)
_STORM = tuple(
    _s(
        f"storm-control {what} level NUM",
        f"storm-control {what} level pps <0-4294967295>",
        slot=f"storm-control {what} level",
        full=f"no storm-control {what}" if what != "all" else "",
    )
    for what in ("broadcast", "multicast", "unknown-unicast", "all")
)
_SPANNING_TREE = (
    _s("spanning-tree portfast [edge|network|normal]", full="no spanning-tree portfast", rule="portfast"),
    _s("spanning-tree portfast auto", off="no spanning-tree portfast auto"),
    _s("spanning-tree link-type point-to-point|shared"),
    _s("spanning-tree bpduguard enable|disable", full="no spanning-tree bpduguard"),
    _s("spanning-tree bpdufilter enable|disable", full="no spanning-tree bpdufilter"),
    _s("spanning-tree cost <1-200000000>", full="no spanning-tree cost"),
    _s("spanning-tree port-priority <0-240>", default="spanning-tree port-priority 128"),
    _s("spanning-tree guard loop|root|none", full="no spanning-tree guard"),
)
_COMMON = (
    _s("description LINE", full="no description"),
    _s("shutdown", full="no shutdown"),
    _s("load-interval <0-600>", full="default load-interval"),
    _s("mtu <68-9214>", default="mtu 1500", full="mtu 1500"),
    _s("logging event link-status", off="no logging event link-status", full="logging event link-status use-global"),
    _s("logging event link-status use-global", default="logging event link-status use-global"),
)
_SPEEDS = (
    "auto|100m|1g|10g|25g|40g|50g|100g|10half|10full|100half|100full|1000half|1000full|"
    "10gfull|25gfull|40gfull|50gfull|100gfull|50g-1|50g-2|100g-2|100g-4|40g-4"
)
_IP = (
    _s("vrf WORD"),
    _s("ip address PREFIX", full="no ip address", rule="one_address"),
    _s("ip address dhcp", rule="one_address"),
    _s("ip address PREFIX* secondary"),
    _s("dhcp client accept default-route"),
    _s("ip helper-address IP*"),
    _s("ipv6 enable"),
    _s("ipv6 address WORD*"),
    _s("ip access-group WORD in"),
    _s("ip access-group WORD out"),
)
_LLDP = (
    _s("lldp transmit", off="no lldp transmit", full="lldp transmit"),
    _s("lldp receive", off="no lldp receive", full="lldp receive"),
)
_ETHERNET: tuple[Statement | Mode, ...] = (
    *_COMMON,
    _s("flowcontrol send on|off|desired", full="no flowcontrol send"),
    _s("flowcontrol receive on|off|desired", full="no flowcontrol receive"),
    _s("l2 mtu <68-65535>", full="no l2 mtu"),
    _s(f"speed {_SPEEDS}", "speed auto " + _SPEEDS, slot="speed", default="speed auto", full="no speed"),
    _s("error-correction encoding fire-code|reed-solomon"),
    *_SWITCHPORT,
    _s("snmp trap link-change", off="no snmp trap link-change", full="snmp trap link-change"),
    *_IP,
    _s(
        "channel-group <1-2000> mode active|passive|on",
        full="no channel-group",
        rule="channel_group",
        slot="channel-group",
    ),
    _s("lacp timer fast|normal", default="lacp timer normal", full="lacp timer normal"),
    _s("lacp timer multiplier <3-3000>", default="lacp timer multiplier 3"),
    _s("lacp port-priority <0-65535>", default="lacp port-priority 32768", full="lacp port-priority 32768"),
    *_LLDP,
    *QOS,
    *PFC,
    _s("sflow enable", off="no sflow enable", full="sflow enable"),
    *_STORM,
    *_SPANNING_TREE,
)
_PORT_CHANNEL: tuple[Statement | Mode, ...] = (
    *_COMMON,
    *_SWITCHPORT,
    _s("snmp trap link-change", off="no snmp trap link-change", full="snmp trap link-change"),
    *_IP,
    _s("port-channel min-links <0-64>", default="port-channel min-links 0", full="no port-channel min-links"),
    _s("port-channel lacp fallback [static|individual]", full="no port-channel lacp fallback"),
    _s(
        "port-channel lacp fallback timeout <0-300>",
        default="port-channel lacp fallback timeout 90",
        full="port-channel lacp fallback timeout 90",
    ),
    _s("l2 mtu <68-65535>", full="no l2 mtu"),
    _s("lacp system-id MAC"),
    _s("mlag <1-2000>", full="no mlag"),
    *QOS,
    _s("sflow enable", off="no sflow enable", full="sflow enable"),
    *_STORM,
    *_SPANNING_TREE,
)
_MANAGEMENT: tuple[Statement | Mode, ...] = (
    *_COMMON,
    _s(f"speed {_SPEEDS}", default="speed auto", full="no speed"),
    *_IP,
    *_LLDP,
)
_ROUTED: tuple[Statement | Mode, ...] = (*_COMMON, _s("autostate", off="no autostate"), *_IP)

# Modes of the kinds of interface.
INTERFACES = {
    "Port-Channel": Mode(("interface INTFS*",), _PORT_CHANNEL, rule="interface"),
    "Ethernet": Mode(("interface INTFS*",), _ETHERNET, rule="interface"),
    "Loopback": Mode(("interface INTFS*",), _ROUTED, rule="interface"),
    "Management": Mode(("interface INTFS*",), _MANAGEMENT, rule="interface"),
    "Vlan": Mode(("interface INTFS*",), _ROUTED, rule="interface"),
}
