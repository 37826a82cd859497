#!/bin/sh
# Puts different data on seven disks. $1 is the prefix of their paths, followed by a number from 7 to 13.
set -eu
udevadm settle
mkfs.ext4 -q -L results "${1}7"
echo 'type=linux' | sfdisk --quiet --label gpt "${1}8"
# Prevent udev from assembling the array again after it is stopped.
old=c0ffee00:0ddba115:5ca1ab1e:0b501e7e
mkdir -p /etc/mdadm/mdadm.conf.d
echo "ARRAY <ignore> UUID=$old" >/etc/mdadm/mdadm.conf.d/old.conf
mdadm --quiet --create /dev/md/old --run --uuid=$old --level=1 --raid-devices=2 --metadata=1.2 "${1}9" missing
mdadm --quiet --stop /dev/md/old
mkswap --quiet --label paging "${1}10"
printf 'the only copy' | dd of="${1}11" bs=1 seek=4711 status=none
vgcreate --quiet --quiet volumes "${1}12"
lvcreate --quiet --quiet --yes --name one --size 64M volumes
mkfs.xfs -q "${1}13"
mkdir -p /srv/mounted
mount "${1}13" /srv/mounted
udevadm settle
