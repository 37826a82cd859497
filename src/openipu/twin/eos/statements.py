# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration language of the twin: which statements there are, where, and what EOS prints of them.

The order of a mode's body is the order of `show running-config`. What is not declared here is no command, as
on a switch without the feature.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Statement:
    """One setting.

    Args:
        forms: syntaxes that set it.
        default: its line when it is as it is by itself; never printed.
        off: the line that EOS keeps for `no`, for what is on by itself.
        shown: the line that EOS prints although it is the default.
        full: the line of `show running-config all` where nothing is set.
        rule: name of what this setting does besides (see `rules`).
        slot: the setting that it is a form of, where the words do not tell.
        group: lines of one group stand together, without `!` between.
    """

    forms: tuple[str, ...]
    default: str = ""
    off: str = ""
    shown: str = ""
    full: str = ""
    rule: str = ""
    slot: str = ""
    group: str = ""


@dataclass(frozen=True)
class Mode:
    """A block: its head, and what may stand in it."""

    forms: tuple[str, ...]
    body: tuple[Statement | Mode, ...]
    rule: str = ""
    default: str = ""


def _s(*forms: str, **more: str) -> Statement:
    return Statement(forms, **more)


def _grouped(group: str, *statements: Statement) -> Iterator[Statement]:
    for one in statements:
        yield Statement(one.forms, one.default, one.off, one.shown, one.full, one.rule, one.slot, group)


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
    Mode(("tx-queue <0-7>*",), _QUEUE),
    Mode(("uc-tx-queue <0-9>*",), _QUEUE),
    Mode(("mc-tx-queue <0-9>*",), _QUEUE),
)
_QOS = (
    _s("service-policy type qos input WORD"),
    _s("service-profile WORD"),
    _s("qos trust cos|dscp", full="default qos trust"),
    _s("qos cos <0-7>"),
    _s("qos dscp <0-63>"),
    _s("shape rate <1-100000000> [kbps|pps|percent]", full="no shape rate"),
    *_QUEUES,
)
_PFC = (
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
_ETHERNET = (
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
    *_QOS,
    *_PFC,
    _s("sflow enable", off="no sflow enable", full="sflow enable"),
    *_STORM,
    *_SPANNING_TREE,
)
_PORT_CHANNEL = (
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
    *_QOS,
    _s("sflow enable", off="no sflow enable", full="sflow enable"),
    *_STORM,
    *_SPANNING_TREE,
)
_MANAGEMENT = (
    *_COMMON,
    _s(f"speed {_SPEEDS}", default="speed auto", full="no speed"),
    *_IP,
    *_LLDP,
)
_ROUTED = (*_COMMON, _s("autostate", off="no autostate"), *_IP)

# By kind of interface: what may stand in it.
INTERFACES = {
    "Port-Channel": Mode(("interface INTFS*",), _PORT_CHANNEL, rule="interface"),
    "Ethernet": Mode(("interface INTFS*",), _ETHERNET, rule="interface"),
    "Loopback": Mode(("interface INTFS*",), _ROUTED, rule="interface"),
    "Management": Mode(("interface INTFS*",), _MANAGEMENT, rule="interface"),
    "Vlan": Mode(("interface INTFS*",), _ROUTED, rule="interface"),
}

VLAN = Mode(
    ("vlan VLANS*",),
    (
        _s("name WORD", rule="vlan_name"),
        _s("state active|suspend", default="state active", full="state active"),
        _s("trunk group WORD*"),
    ),
    rule="vlan",
)

_HTTP = Mode(
    ("management api http-commands",),
    (
        _s(
            "protocol https [port <1-65535>]",
            default="protocol https",
            off="no protocol https",
            full="protocol https port 443",
        ),
        _s("protocol http [port <1-65535>] [localhost]", full="no protocol http"),
        _s("protocol https ssl profile WORD"),
        _s("protocol unix-socket"),
        _s("default-services"),
        _s("cors allowed-origin WORD*"),
        _s("session timeout <0-1440>"),
        _s("qos dscp <0-63>"),
        _s("shutdown", off="no shutdown", full="shutdown"),
        Mode(("vrf WORD*",), (_s("shutdown", off="no shutdown", full="shutdown"), _s("ip access-group WORD"))),
    ),
)
_POLICY = Mode(
    ("policy-map type quality-of-service WORD*",),
    (Mode(("class WORD*",), (_s("set traffic-class <0-7>"), _s("set dscp <0-63>"), _s("set cos <0-7>"))),),
)
_ACL = (_s("[<1-4294967295>] permit|deny|remark LINE", rule="sequence"), _s("counters per-entry"))
_BGP = (
    *(
        _s(f"{word} LINE*")
        for word in (
            "router-id",
            "neighbor",
            "network",
            "redistribute",
            "maximum-paths",
            "bgp",
            "timers",
            "aggregate-address",
            "distance",
        )
    ),
    Mode(("address-family ipv4|ipv6|evpn*",), (_s("neighbor LINE*"), _s("network LINE*"))),
)
_OSPF = tuple(
    _s(f"{word} LINE*")
    for word in (
        "router-id",
        "network",
        "redistribute",
        "passive-interface",
        "area",
        "max-lsa",
        "log-adjacency-changes",
        "maximum-paths",
    )
)

GLOBAL = Mode(
    (),
    (
        *_grouped(
            "users",
            _s("enable password LINE", "enable secret LINE", slot="enable"),
            _s("aaa root LINE", shown="no aaa root"),
            _s("username WORD* LINE"),
        ),
        *_grouped("alias", _s("alias WORD* LINE")),
        *_grouped("link-events", _s("logging event link-status global", off="no logging event link-status global")),
        Mode(("daemon WORD*",), (_s("exec LINE"), _s("shutdown", off="no shutdown"))),
        *_grouped(
            "errdisable",
            _s("errdisable detect cause WORD*"),
            _s("errdisable recovery cause WORD*"),
            _s("errdisable recovery interval <30-86400>", default="errdisable recovery interval 300"),
        ),
        *_grouped("load", _s("load-interval default <0-600>")),
        *_grouped(
            "transceiver",
            _s(
                "transceiver qsfp default-mode WORD",
                default="transceiver qsfp default-mode 4x10G",
                shown="transceiver qsfp default-mode 4x10G",
            ),
        ),
        *_grouped(
            "routing-model",
            _s(
                "service routing protocols model ribd|multi-agent",
                default="service routing protocols model ribd",
                shown="service routing protocols model ribd",
            ),
        ),
        *_grouped(
            "lacp",
            _s(
                "lacp system-priority <0-65535>",
                default="lacp system-priority 32768",
                full="lacp system-priority 32768",
            ),
        ),
        *_grouped(
            "queue-monitor",
            _s("queue-monitor length"),
            _s("queue-monitor length notifying"),
            _s("queue-monitor length default thresholds <1-1000000> <1-1000000>"),
        ),
        *_grouped(
            "lldp",
            _s("lldp timer <1-32768>", default="lldp timer 30", full="lldp timer 30"),
            _s(
                "lldp hold-time <10-65535>",
                "lldp holdtime <10-65535>",
                slot="lldp hold-time",
                default="lldp hold-time 120",
                full="lldp hold-time 120",
            ),
            _s("lldp timer reinitialization <1-10>", default="lldp timer reinitialization 2"),
            _s("lldp tlv transmit WORD*", rule="on_by_itself"),
            _s("lldp run", off="no lldp run", full="lldp run"),
            _s("lldp management-address LINE"),
        ),
        *_grouped(
            "logging",
            _s("logging on", off="no logging on", full="logging on"),
            _s(
                "logging buffered [<10-2147483647>] "
                "[alerts|critical|debugging|emergencies|errors|informational|notifications|warnings]"
            ),
            _s(
                "logging trap [alerts|critical|debugging|emergencies|errors|informational|notifications|"
                "system|warnings]",
                off="no logging trap",
                default="logging trap",
            ),
            _s(
                "logging console [alerts|critical|debugging|emergencies|errors|informational|notifications|warnings]",
                off="no logging console",
                default="logging console",
            ),
            _s(
                "logging monitor [alerts|critical|debugging|emergencies|errors|informational|notifications|warnings]",
                off="no logging monitor",
            ),
            _s("logging repeat-messages"),
            _s("logging synchronous [LINE]"),
            _s("logging host WORD* [<1-65535>] [protocol tcp|udp]"),
            _s("logging vrf WORD* host WORD* [<1-65535>] [protocol tcp|udp]"),
            _s("logging format timestamp LINE"),
            _s("logging format hostname fqdn|ipv4"),
            _s("logging facility WORD", default="logging facility local4"),
            _s("logging source-interface INTF"),
            _s("logging vrf WORD* source-interface INTF"),
            _s("logging level WORD* WORD"),
        ),
        *_grouped(
            "hostname",
            _s("hostname WORD", shown="", full="hostname localhost", default="hostname localhost"),
            _s("ip domain lookup source-interface INTF"),
            _s("ip name-server vrf WORD* IP*", "ip name-server IP*", rule="name_server"),
            _s("dns domain WORD", "ip domain-name WORD", slot="dns domain", rule="dns_domain"),
        ),
        Mode(("qos profile WORD*",), (*_QOS, *_PFC)),
        *_grouped(
            "sflow",
            _s("sflow sample <1-4294967295>"),
            _s("sflow polling-interval <0-3600>", default="sflow polling-interval 2"),
            _s("sflow destination WORD* [<1-65535>]"),
            _s("sflow source-interface INTF"),
            _s("sflow run"),
        ),
        *_grouped(
            "snmp-server",
            _s("snmp-server engineID local WORD"),
            _s("snmp-server chassis-id LINE"),
            _s("snmp-server contact LINE"),
            _s("snmp-server location LINE"),
            _s(
                "snmp-server source-interface INTF",
                "snmp-server local-interface INTF",
                slot="snmp-server local-interface",
            ),
            _s("snmp-server view WORD* WORD* included|excluded"),
            _s("snmp-server community WORD* [view WORD] [ro|rw] [WORD]", rule="snmp_community"),
            _s("snmp-server group WORD* v1|v2c|v3* [auth|noauth|priv] [read WORD] [write WORD] [notify WORD]"),
            _s("snmp-server user WORD* WORD v1|v2c|v3 [LINE]", rule="snmp_user"),
            _s(
                "snmp-server host WORD* [vrf WORD] [traps|informs] [version 1|2c|3 [auth|noauth|priv]] WORD "
                "[udp-port <1-65535>]"
            ),
            _s("snmp-server enable traps", "snmp-server enable traps WORD* [WORD]"),
            _s("snmp-server vrf WORD* [local-interface INTF]"),
        ),
        *_grouped(
            "spanning-tree",
            _s(
                "spanning-tree mode mstp|rstp|rapid-pvst|none",
                default="spanning-tree mode mstp",
                shown="spanning-tree mode mstp",
            ),
            _s("spanning-tree edge-port bpduguard default", full="no spanning-tree edge-port bpduguard default"),
            _s("spanning-tree edge-port bpdufilter default"),
            _s("spanning-tree portfast bpduguard default"),
            _s("spanning-tree hello-time <200-10000>", default="spanning-tree hello-time 2000"),
            _s("spanning-tree max-age <6-40>", default="spanning-tree max-age 20"),
            _s("spanning-tree forward-time <4-30>", default="spanning-tree forward-time 15"),
            _s("spanning-tree vlan-id VLANS* priority <0-61440>"),
            _s("spanning-tree mst <0-4094>* priority <0-61440>"),
            _s("spanning-tree priority <0-61440>", default="spanning-tree priority 32768"),
        ),
        *_grouped("clock", _s("clock timezone WORD", default="clock timezone UTC")),
        VLAN,
        Mode(("vrf instance WORD*",), (_s("rd WORD"), _s("description LINE"))),
        *_grouped("banner", _s("banner login|motd*", rule="banner")),
        _HTTP,
        Mode(("management console",), (_s("idle-timeout <0-86400>", default="idle-timeout 0"),)),
        Mode(("management security",), (_s("password minimum length <1-32>"), _s("password encryption-key common"))),
        *_grouped(
            "aaa",
            _s("aaa authentication login default|console* LINE"),
            _s("aaa authentication enable default LINE"),
            _s("aaa authentication policy LINE*"),
            _s("aaa authorization exec default LINE"),
            _s("aaa authorization commands WORD* default LINE"),
            _s("aaa authorization console"),
            _s("aaa accounting LINE*"),
        ),
        *INTERFACES.values(),
        *_grouped(
            "mac-table",
            _s(
                "mac address-table aging-time <0-1000000>",
                default="mac address-table aging-time 300",
                full="mac address-table aging-time 300",
            ),
            _s("mac address-table static MAC* vlan VLAN* interface INTF"),
        ),
        Mode(("ip access-list WORD*",), _ACL),
        Mode(("ip access-list standard WORD*",), _ACL),
        *_grouped(
            "routing", _s("ip routing", shown="no ip routing"), _s("ip routing vrf WORD*"), _s("ipv6 unicast-routing")
        ),
        *_grouped("routes", _s("ip route PREFIX* [vrf WORD] LINE*"), _s("ip route vrf WORD* PREFIX* LINE*")),
        *_grouped("arp", _s("arp aging timeout default <60-65535>")),
        *_grouped(
            "ntp",
            _s("ntp authentication-key <1-65535>* LINE"),
            _s("ntp trusted-key LINE"),
            _s("ntp authenticate [servers]"),
            _s("ntp local-interface INTF", "ntp source INTF", slot="ntp local-interface", rule="ntp_source"),
            _s("ntp local-interface vrf WORD* INTF"),
            *(
                _s(
                    f"ntp server {vrf}WORD* [prefer] [burst] [iburst] [version <1-4>] [minpoll <3-17>] "
                    "[maxpoll <3-17>] [local-interface INTF] [key <1-65535>]"
                )
                for vrf in ("", "vrf WORD* ")
            ),
            _s("ntp serve [all]"),
        ),
        *_grouped(
            "qos",
            _s("qos rewrite cos"),
            _s("qos rewrite dscp"),
            _s("qos map cos LINE", rule="qos_map"),
            _s("qos map dscp LINE", rule="qos_map"),
            _s("qos map traffic-class <0-7>* to cos|dscp|tx-queue|uc-tx-queue|mc-tx-queue* <0-63>"),
            _s(
                "qos random-detect ecn global-buffer minimum-threshold <1-1000000> kbytes|mbytes|segments|bytes "
                "maximum-threshold <1-1000000> kbytes|mbytes|segments|bytes [weight <0-15>]",
                slot="qos random-detect ecn global-buffer",
            ),
        ),
        Mode(("class-map type qos match-any WORD*",), (_s("match LINE*"),)),
        _POLICY,
        *_grouped(
            "pfc",
            _s("priority-flow-control all off"),
            _s("priority-flow-control pause watchdog default timeout NUM"),
            _s("priority-flow-control pause watchdog default recovery-time NUM"),
            _s("priority-flow-control pause watchdog default polling-interval NUM"),
            _s(
                "priority-flow-control pause watchdog action drop|errdisable|notify-only",
                default="priority-flow-control pause watchdog action errdisable",
            ),
            _s("priority-flow-control pause watchdog override action drop"),
        ),
        Mode(("router bgp <1-4294967295>*",), _BGP),
        Mode(("router ospf <1-65535>*",), _OSPF),
        Mode(
            ("management ssh",),
            (_s("idle-timeout <0-86400>", default="idle-timeout 0"), _s("shutdown", full="no shutdown")),
        ),
    ),
)

# Old words that EOS still takes, and what it keeps of them.
RENAMED = {
    ("priority-flow-control", "mode", "on"): ("priority-flow-control", "on"),
    ("lacp", "rate"): ("lacp", "timer"),
    ("speed", "forced"): ("speed",),
    ("mac-address-table",): ("mac", "address-table"),
}
