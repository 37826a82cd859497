#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# First process in the namespaces of a node. It prepares network and mounts, runs a command, and reaps orphaned processes.
# All processes in the namespaces, including all pods, end with it.
#   isolate.sh ADDRESS HOSTNAME COMMAND...
set -eu
address=$1
hostname "$2"
shift 2
# Hide the files of the container programs of the machine. kubelet would remove the logs of pods that it does not know.
mkdir -p /var/lib/cni
for folder in /run /var/log /var/lib/cni; do mount -t tmpfs -o mode=0755 tmpfs "$folder"; done
mkdir -p /run/lock /run/netns
printf '127.0.0.1 localhost\n%s %s\n' "$address" "$(hostname)" >/run/hosts
mount --bind /run/hosts /etc/hosts
ip link set lo up
ip link add node0 type veth peer name node1
ip address add "$address/24" dev node0
ip link set node0 up
ip link set node1 up
ip route add default dev node0
# kubelet looks for credentials of a cloud at this address, and would wait for a timeout.
ip route add unreachable 169.254.169.254/32
echo 1 >/proc/sys/net/ipv4/ip_forward
"$@"
