#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Walk the path of a new user in an empty folder: clone, bring-up, bring-up again without a change, down.
set -eu
checkout=$(cd "$(dirname "$0")/.." && pwd)
folder=$(mktemp -d)
cd "$folder"
trap 'make -s -C "$folder/openipu.pod" twin-down >/dev/null 2>&1 || true; rm -rf "$folder"' EXIT
git clone --quiet "$checkout" openipu.pod
cd openipu.pod
# Variables of the calling make would name its own environment.
unset MAKEFLAGS MAKELEVEL ANSIBLE_CONFIG
make bring-up
again=$(make bring-up)
printf '%s\n' "$again"
if ! printf '%s\n' "$again" | grep -q 'changed=0' || printf '%s\n' "$again" | grep -q 'changed=[1-9]'; then
    echo "The second bring-up changed something." >&2
    exit 1
fi
make twin-down
left=$(git status --porcelain)
if [ -n "$left" ]; then
    printf 'Files are left after make twin-down:\n%s\n' "$left" >&2
    exit 1
fi
echo "The path of a new user works."
