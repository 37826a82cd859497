#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# First process in the namespaces of the hosts. It prepares the mounts for podman, then reaps orphaned processes.
# All processes in the namespaces, including the hosts, end with it.
#   holder.sh GROUP NAME_SERVER
set -eu
if [ "${3:-}" != grouped ]; then
    # Separate control group, which is the root of the tree of the hosts. systemd requires a single tree, which the
    # machine may not have.
    mount -t sysfs sysfs /sys
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
    mkdir -p "/sys/fs/cgroup/$1"
    echo $$ >"/sys/fs/cgroup/$1/cgroup.procs"
    umount /sys/fs/cgroup
    exec unshare --cgroup sh "$0" "$1" "$2" grouped
fi
mount -t cgroup2 cgroup2 /sys/fs/cgroup
# Only a group without processes can delegate controllers to its children.
mkdir /sys/fs/cgroup/init
echo $$ >/sys/fs/cgroup/init/cgroup.procs

# Hide the files of the podman and the init of the machine.
resolv=$(readlink -f /etc/resolv.conf)
mount -t tmpfs -o mode=0755 tmpfs /run
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mkdir -p /run/lock /run/netns /run/hosts/ssh
# Use the name server of the uplink.
printf 'nameserver %s\n' "$2" >/run/hosts/resolv.conf
mkdir -p "$(dirname "$resolv")"
[ -e "$resolv" ] || : >"$resolv"
mount --bind /run/hosts/resolv.conf "$resolv"
ip link set lo up
: >/run/hosts/ready
exec catatonit -P
