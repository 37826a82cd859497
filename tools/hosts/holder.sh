#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The first process in the namespaces of the hosts: lays out what podman sees there, then looks after
# processes whose parents have ended. All of it, hosts too, ends with this process.
#   holder.sh GROUP NAME_SERVER
set -eu
if [ "${3:-}" != grouped ]; then
    # A control group of its own, which is the root of all that hosts see: one tree, as systemd wants it,
    # whatever the machine itself has.
    mount -t sysfs sysfs /sys
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
    mkdir -p "/sys/fs/cgroup/$1"
    echo $$ >"/sys/fs/cgroup/$1/cgroup.procs"
    umount /sys/fs/cgroup
    exec unshare --cgroup sh "$0" "$1" "$2" grouped
fi
mount -t cgroup2 cgroup2 /sys/fs/cgroup
# Controllers go to groups below only when the group itself holds no process.
mkdir /sys/fs/cgroup/init
echo $$ >/sys/fs/cgroup/init/cgroup.procs

# Nothing of the machine's own podman, nor of its init.
resolv=$(readlink -f /etc/resolv.conf)
mount -t tmpfs -o mode=0755 tmpfs /run
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mkdir -p /run/lock /run/netns /run/hosts/ssh
# Names are asked where the uplink answers.
printf 'nameserver %s\n' "$2" >/run/hosts/resolv.conf
mkdir -p "$(dirname "$resolv")"
[ -e "$resolv" ] || : >"$resolv"
mount --bind /run/hosts/resolv.conf "$resolv"
ip link set lo up
: >/run/hosts/ready
exec catatonit -P
