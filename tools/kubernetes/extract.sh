#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Prepare a root file system of unpacked Debian packages, whose archives are still in it.
#   extract.sh ROOT
set -eu
cd "$1"
# No package is installed, so dpkg has no records. Scanners of images also read this folder.
mkdir -p var/lib/dpkg/status.d
for archive in var/cache/apt/archives/*.deb; do
  dpkg-deb --field "$archive" >"var/lib/dpkg/status.d/$(dpkg-deb --field "$archive" Package)"
done
rm -f var/lib/dpkg/status
# Files that depend on this machine, and files that no program reads. Licences stay.
rm -rf etc/hostname etc/resolv.conf etc/apt var/cache/apt var/lib/apt var/log/*
rm -rf usr/share/man usr/share/info usr/share/locale usr/share/lintian
if [ -d usr/share/doc ]; then find usr/share/doc -type f ! -name copyright -delete; fi
# Scripts of the packages would do the rest.
if [ -d usr/share/ca-certificates ]; then
  mkdir -p etc/ssl/certs
  find usr/share/ca-certificates -name '*.crt' -print0 | LC_ALL=C sort -z | xargs -0 cat >etc/ssl/certs/ca-certificates.crt
fi
mkdir -p etc
printf '%s\n' 'root:x:0:0:root:/root:/sbin/nologin' 'nonroot:x:65532:65532:nonroot:/:/sbin/nologin' >etc/passwd
printf '%s\n' 'root:x:0:' 'nonroot:x:65532:' >etc/group
