# SPDX-License-Identifier: GPL-3.0-or-later
"""Random configurations of a switch, and the form in which eos_pod returns each of them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Config = dict[str, Any]
# Defaults, which are not returned. Source: EOS manual, independent of the module.
DEFAULTS: Config = {
    "description": "",
    "enabled": True,
    "mtu": 1500,
    "address": "",
    "mode": "access",
    "access_vlan": 1,
    "native_vlan": 1,
    "trunk_vlans": list(range(1, 4095)),
    "port_channel": {},
    "edge": False,
    "lldp": True,
    "dscp_trust": False,
    "no_drop": [],
    "ecn": {},
    "hostname": "localhost",
    "spanning_tree": "mstp",
    "ntp_servers": [],
    "syslog_servers": [],
    "gateways": [],
    "snmp_location": "",
    "snmp_contact": "",
    "pfc_watchdog_timeout": 0.0,
    "pfc_watchdog_recovery": 0.0,
    "pfc_watchdog_action": "errdisable",
}
PORTS = [f"Ethernet{number}/1" for number in range(9, 17)]

vlan = st.integers(1, 4094)
word = st.text("abcdefgHIJK0123456789_-.", min_size=1, max_size=12)
text = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"]), min_size=1, max_size=20).filter(
    lambda found: found.strip() and found.isprintable()
)
address = st.builds("10.1.{}.{}".format, st.integers(0, 255), st.integers(1, 254))
addresses = st.lists(address, max_size=3)  # may contain duplicates
trunk = st.one_of(
    st.lists(vlan, max_size=8),
    st.builds(lambda first, more: list(range(first, min(first + more, 4094) + 1)), vlan, st.integers(0, 4093)),
)


def some(**options: st.SearchStrategy[Any]) -> st.SearchStrategy[Config]:
    """Return a strategy for any subset of these options."""
    return st.fixed_dictionaries({}, optional=options)


ANY_INTERFACE = {
    "description": text,
    "enabled": st.booleans(),
    "mtu": st.integers(68, 9214),
    "mode": st.sampled_from(["access", "trunk", "routed"]),
    "access_vlan": vlan,
    "native_vlan": vlan,
    "trunk_vlans": trunk,
    "edge": st.booleans(),
    "dscp_trust": st.booleans(),
    "ecn": st.fixed_dictionaries(
        {"queue": st.integers(0, 7), "minimum": st.integers(1, 900), "maximum": st.integers(901, 9000)}
    ),
}
port = some(
    **ANY_INTERFACE,
    port_channel=st.fixed_dictionaries(
        {"id": st.integers(1, 4), "lacp": st.sampled_from(["active", "passive", "on"])},
    ),
    lldp=st.booleans(),
    no_drop=st.lists(st.integers(0, 7), unique=True),
)
bond = some(**ANY_INTERFACE)
svi = some(description=text, enabled=st.booleans(), mtu=st.integers(68, 9214), address=address.map("{}/24".format))
vlans = st.dictionaries(vlan, word, max_size=5).map(
    lambda found: [{"id": number, "name": name} for number, name in found.items()]
)


def _named(names: list[str], options: st.SearchStrategy[Config]) -> st.SearchStrategy[list[Config]]:
    return st.dictionaries(st.sampled_from(names), options, max_size=5).map(
        lambda found: [{"name": name, **item} for name, item in found.items()]
    )


interfaces = st.tuples(
    _named([f"Port-Channel{number}" for number in range(1, 5)], bond),
    _named(PORTS, port),
    _named(["Vlan11", "Vlan12"], svi),
).map(lambda kinds: [item for kind in kinds for item in kind])
configs: st.SearchStrategy[Config] = some(
    vlans=vlans,
    interfaces=interfaces,
    hostname=st.text("abcxyz", min_size=1, max_size=8),
    lldp=st.booleans(),
    spanning_tree=st.sampled_from(["mstp", "rstp", "rapid-pvst", "none"]),
    ntp_servers=addresses,
    syslog_servers=addresses,
    gateways=addresses,
    snmp_location=text,
    snmp_contact=text,
    snmp_communities=st.lists(word.map("c-{}".format), max_size=2),
    pfc_watchdog_timeout=st.integers(1, 600).map(lambda tenths: tenths / 10),
    pfc_watchdog_recovery=st.integers(1, 600).map(lambda tenths: tenths / 10),
    pfc_watchdog_action=st.sampled_from(["drop", "errdisable", "notify-only"]),
)


def canonical(config: Config) -> Config:
    """Return a configuration in a form for comparison: without defaults and secrets, lists sorted, keyed by name."""
    settings = {
        name: value
        for name, value in _without_defaults(config).items()
        if name not in ("vlans", "interfaces", "snmp_communities") and value is not None
    }
    names = {item["id"]: item["name"] for item in config.get("vlans") or ()}
    return {
        **settings,
        "vlans": {number: name for number, name in names.items() if (number, name) != (1, "default")},
        "interfaces": {item["name"]: _without_defaults(item) for item in config.get("interfaces") or ()},
    }


def _without_defaults(options: Config) -> Config:
    found = {name: _plain(value) for name, value in options.items() if name not in ("vlans", "interfaces")}
    return {name: value for name, value in found.items() if name != "name" and value != DEFAULTS.get(name, ...)}


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return sorted(set(value))
    return " ".join(value.split()) if isinstance(value, str) else value
