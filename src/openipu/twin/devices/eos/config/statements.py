# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration language of the twin: statements of all modes, and the lines that EOS prints for them.

The order of a mode's body is the order of `show running-config`. Undeclared statements are invalid commands, as
on a switch without the feature.
"""

from __future__ import annotations

from openipu.twin.devices.eos.config.interface_statements import INTERFACES, PFC, QOS
from openipu.twin.devices.eos.config.language import Mode, Statement
from openipu.twin.devices.eos.config.language import grouped as _grouped
from openipu.twin.devices.eos.config.language import statement as _s

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
        _s("protocol http [port <1-65535>]", full="no protocol http"),
        _s("protocol http localhost [port <1-65535>]"),
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
_BGP: tuple[Statement | Mode, ...] = (
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
            _s("username WORD* ssh-key LINE", "username WORD* sshkey LINE", "username WORD* LINE", rule="user"),
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
            _s("lldp tlv transmit WORD*", rule="on_by_default"),
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
        Mode(("qos profile WORD*",), (*QOS, *PFC)),
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

# Deprecated words that EOS accepts, with the words that it stores instead.
ALIASES = {
    ("priority-flow-control", "mode", "on"): ("priority-flow-control", "on"),
    ("lacp", "rate"): ("lacp", "timer"),
    ("speed", "forced"): ("speed",),
    ("mac-address-table",): ("mac", "address-table"),
}
