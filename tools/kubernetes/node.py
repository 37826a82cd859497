# SPDX-License-Identifier: GPL-3.0-or-later
"""A node that runs real pods: containerd, kubelet and kube-proxy. It works only in the namespaces of ``isolation``."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import yaml

from openipu.process.background import ProcessError, Service

from ..hosts.site import run, system_environment
from .control_plane import ControlPlane
from .images import PAUSE
from .isolation import GROUP_VARIABLE
from .service_names import DOMAIN
from .site import CHECKOUT, NODE, NODE_ADDRESS

READY_SECONDS = 120.0
_PODS = "10.244.0.0/24"
_NAMESPACE = "k8s.io"  # of the images that kubelet uses


class Node:
    """The only node of a control plane. ``labels``: those that select it."""

    def __init__(self, plane: ControlPlane, programs: Path, labels: str = "ipunode=node1", registry: str = "") -> None:
        """``registry``: host and port of a registry without TLS, which replaces that of images without a host."""
        self._plane = plane
        self._programs = programs
        self._labels = labels
        self._registry = registry
        self._group = os.environ.get(GROUP_VARIABLE, "/")
        self.folder = plane.site.state / "node"

    @property
    def socket(self) -> Path:
        """Socket of containerd."""
        return self.folder / "containerd.sock"

    def up(self, images: Iterable[Path]) -> None:
        """Start the node with images from archives, and wait until it is ready. Raises ProcessError."""
        self.folder.mkdir(mode=0o700)
        self._write_settings()
        kubectl = [str(self._programs / "kubectl"), f"--kubeconfig={self._plane.site.kubeconfig()}"]
        self._start("containerd", ["containerd", "--config", str(self.folder / "containerd.toml")], self.socket.exists)
        for archive in images:
            self._ctr("images", "import", str(archive))
        self._start_names()
        site = self._plane.site
        kubelet = [
            str(self._programs / "kubelet"),
            f"--kubeconfig={site.kubeconfig(f'system:node:{NODE}')}",
            f"--config={self.folder / 'kubelet.yaml'}",
            "--container-runtime=remote",
            f"--container-runtime-endpoint=unix://{self.socket}",
            f"--hostname-override={NODE}",
            f"--node-ip={NODE_ADDRESS}",
            f"--root-dir={self.folder / 'kubelet'}",
            f"--volume-plugin-dir={self.folder / 'volume-plugins'}",
        ]
        condition = '{.status.conditions[?(@.type=="Ready")].status}'

        def ready() -> bool:
            try:
                return run([*kubectl, "get", "node", NODE, f"--output=jsonpath={condition}"], "read the node") == "True"
            except ProcessError:
                return False

        self._start("kubelet", kubelet, ready)
        run([*kubectl, "label", "node", NODE, self._labels, "--overwrite"], "label the node")
        proxy = [
            str(self._programs / "kube-proxy"),
            f"--kubeconfig={site.kubeconfig('system:kube-proxy')}",
            f"--hostname-override={NODE}",
            "--proxy-mode=iptables",
            f"--cluster-cidr={_PODS}",
            "--conntrack-max-per-core=0",
            "--conntrack-tcp-timeout-established=0",
            "--conntrack-tcp-timeout-close-wait=0",
        ]
        self._start("kube-proxy", proxy, lambda: "KUBE-SERVICES" in run(["iptables-save"], "read the firewall rules"))

    def _start_names(self) -> None:
        """Start the name server of the pods. It knows the names of Services only."""
        hosts = self.folder / "hosts"
        hosts.mkdir()
        follow = [
            sys.executable,
            "-m",
            "tools.kubernetes.service_names",
            str(self._plane.site.kubeconfig()),
            str(hosts),
        ]
        self._start("service-names", follow, (hosts / "default.kubernetes").exists)
        options = ["--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", f"--hostsdir={hosts}"]
        options += [f"--local=/{DOMAIN}/", f"--listen-address={NODE_ADDRESS}", "--bind-interfaces", "--user=root"]
        self._start("dnsmasq", ["dnsmasq", *options, "--pid-file="], _listens)

    def _start(self, name: str, command: Sequence[str], ready: Callable[[], bool]) -> None:
        log = self.folder / f"{name}.log"
        environment = {**system_environment(), "PYTHONPATH": str(CHECKOUT)}
        service = Service(name, self.folder / f"{name}.json", log, command, environment)
        service.start()
        service.wait_ready(ready, READY_SECONDS)

    def _ctr(self, *arguments: str) -> str:
        command = ["ctr", f"--address={self.socket}", f"--namespace={_NAMESPACE}", *arguments]
        return run(command, f"run ctr {' '.join(arguments[:2])}")

    def _write_settings(self) -> None:
        folder = self.folder
        network = folder / "network"
        network.mkdir()
        for name, settings in self._settings().items():
            (folder / name).write_text(settings)

    def _settings(self) -> dict[str, str]:
        """Return file -> content."""
        folder = self.folder
        kubelet = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            # Only processes in the namespaces of the node reach it.
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": self._group,
            "clusterDNS": [NODE_ADDRESS],
            "clusterDomain": DOMAIN,
            "enforceNodeAllocatable": [],
            "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%"},
            "failSwapOn": False,
            "makeIPTablesUtilChains": False,
            "maxOpenFiles": 20000,
            "nodeStatusUpdateFrequency": "2s",
            "oomScoreAdj": 0,
            "readOnlyPort": 0,
            "resolvConf": str(folder / "resolv.conf"),
        }
        bridge = {
            "type": "bridge",
            "bridge": "pods0",
            "isGateway": True,
            "hairpinMode": True,
            "ipMasq": False,
            "ipam": {
                "type": "host-local",
                "subnet": _PODS,
                "routes": [{"dst": "0.0.0.0/0"}],
                "dataDir": str(folder / "addresses"),
            },
        }
        ports = {"type": "portmap", "capabilities": {"portMappings": True}}
        network = {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge, ports]}
        return {
            "kubelet.yaml": yaml.safe_dump(kubelet),
            "containerd.toml": self._containerd(),
            "network/pods.conflist": json.dumps(network),
            # A name server that rejects at once: lookups of host names would wait for a timeout.
            "resolv.conf": "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n",
        }

    def _containerd(self) -> str:
        folder = self.folder
        mirror = (
            f"""
[plugins."io.containerd.grpc.v1.cri".registry.mirrors."docker.io"]
  endpoint = ["http://{self._registry}"]
"""
            if self._registry
            else ""
        )
        return f"""version = 2
root = "{folder / "containerd"}"
state = "{folder / "containerd-state"}"
[grpc]
  address = "{self.socket}"
[plugins."io.containerd.internal.v1.opt"]
  path = "{folder / "opt"}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  restrict_oom_score_adj = true
  disable_apparmor = true
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/usr/lib/cni"
  conf_dir = "{folder / "network"}"
[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = "overlayfs"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  SystemdCgroup = false
{mirror}"""


def _listens() -> bool:
    """Return whether the name server accepts connections."""
    try:
        with socket.create_connection((NODE_ADDRESS, 53), timeout=1):
            return True
    except OSError:
        return False
