#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Install the packages of a list that are missing. It needs no network if none is missing.
#   packages.sh LIST
set -eu
missing=
packages=$(sed 's/#.*//' "$1")
for package in $packages; do
    dpkg-query --show --showformat='${db:Status-Abbrev}\n' "$package" 2>/dev/null | grep -q '^ii' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
apt-get -qq update
# shellcheck disable=SC2086  # a list of words
DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $missing
rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/*.deb /var/log/apt /var/log/dpkg.log
