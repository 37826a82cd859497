# SPDX-License-Identifier: GPL-3.0-or-later
"""Services of the EOS twin: `show` commands print what is configured."""

from __future__ import annotations

from tests.unit.twin.devices.eos.switch_lines import Console


def test_destinations_of_log_messages() -> None:
    console = Console()
    console.configure(
        *("logging host 10.0.0.9", "logging host 10.0.0.8 1514 protocol tcp", "logging host 10.0.0.7 protocol tcp"),
        *("logging vrf MGMT host 10.0.0.6", "logging source-interface Management1"),
        "logging vrf MGMT source-interface Vlan99",  # has no address
    )
    assert console.type("show logging").splitlines() == [
        "Syslog logging: enabled",
        "    Logging to '10.0.0.7' port 514 in VRF default via tcp",
        "    Logging to '10.0.0.8' port 1514 in VRF default via tcp",
        "    Logging to '10.0.0.9' port 514 in VRF default via udp",
        "    Logging to '10.0.0.6' port 514 in VRF MGMT via udp",
        "    Logging source-interface 'Management1', IP Address 10.1.3.111 in VRF default",
    ]


def test_snmp() -> None:
    console = Console()
    found = console.show_json("show snmp")
    assert (found["logging"], found["srcIntf"]) == ({"loggingEnabled": False, "hosts": {}}, {"sourceInterfaces": {}})
    assert set(found["counters"].values()) == {0}
    console.configure(
        *("snmp-server community word ro", "snmp-server local-interface Management1"),
        "snmp-server host 10.0.0.9 version 2c word",
        "snmp-server host 10.0.0.8 vrf MGMT version 2c word udp-port 163",
        *("vrf instance MGMT", "snmp-server vrf MGMT local-interface Management1"),
    )
    found = console.show_json("show snmp")
    assert found["srcIntf"] == {"sourceInterfaces": {"default": "Management1", "MGMT": "Management1"}}
    assert found["logging"] == {
        "loggingEnabled": True,
        "hosts": {"10.0.0.8": {"port": 163, "vrf": "MGMT"}, "10.0.0.9": {"port": 162, "vrf": ""}},
    }
    assert "SNMP logging: enabled\n    Logging to 10.0.0.8.163\n" in console.type("show snmp")


def test_the_servers_of_eapi() -> None:
    console = Console()
    found = console.show_json("show management api http-commands")
    assert found["httpsServer"] == {"configured": True, "running": True, "port": 443}
    assert (found["vrf"], found["urls"]) == ("default", ["Management1 : https://10.1.3.111:443"])
    assert not any(found[f"{name}Server"]["configured"] for name in ("http", "localHttp", "unixSocket"))
    console.configure(
        *("vrf instance MGMT", "interface Management1", "vrf MGMT", "ip address 10.1.3.111/24"),
        *("management api http-commands", "protocol https port 8443", "protocol http port 8000"),
        *("protocol http localhost port 8081", "protocol unix-socket", "vrf MGMT", "no shutdown"),
    )
    found = console.show_json("show management api http-commands")
    ports = {name: found[f"{name}Server"]["port"] for name in ("https", "http", "localHttp")}
    assert ports == {"https": 8443, "http": 8000, "localHttp": 8081}
    assert found["vrf"] == "MGMT" and found["unixSocketServer"] == {"configured": True, "running": True}
    assert found["urls"] == ["Management1 : https://10.1.3.111:8443", "Management1 : http://10.1.3.111:8000"]
    assert "HTTPS server:       running, set to use port 8443" in console.type("show management api http-commands")
    console.configure("management api http-commands", "shutdown")
    found = console.show_json("show management api http-commands")
    assert (found["enabled"], found["httpsServer"]["running"], found["urls"]) == (False, False, [])
    console.configure("no management api http-commands")
    found = console.show_json("show management api http-commands")
    assert (found["enabled"], found["httpsServer"]["running"], found["vrf"]) == (False, False, "default")


def test_the_certificate_profile_of_eapi() -> None:
    console = Console()
    assert "sslProfile" not in console.show_json("show management api http-commands")
    console.configure("management api http-commands", "protocol https ssl profile pod")
    found = console.show_json("show management api http-commands")
    assert found["sslProfile"] == {"name": "pod", "configured": True, "state": "invalid"}
