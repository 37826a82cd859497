#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Build Kubernetes programs from the source package of Debian.
#   build.sh FOLDER PROGRAM...
# FOLDER exists and contains apt-sources/ with sources of type deb-src. The programs are in FOLDER/programs afterwards.
set -eu
folder=$1
shift
cd "$folder"
mkdir -p apt-lists/partial source/home programs
apt="apt-get -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts=$folder/apt-sources -o Dir::State::lists=$folder/apt-lists"
$apt -qq update
cd source
# apt as root would give the files to its sandbox user, who may not enter the folder.
$apt -qq -o APT::Sandbox::User=root source --download-only kubernetes
dpkg-source --no-check -x kubernetes_*.dsc tree
cd tree
# The copy of reflect2 in the package crashes with Go 1.18 and later. Debian has a newer release.
reflect2=vendor/github.com/modern-go/reflect2
rm -f $reflect2/*.go $reflect2/*.s
cp /usr/share/gocode/src/github.com/modern-go/reflect2/*.go /usr/share/gocode/src/github.com/modern-go/reflect2/*.s $reflect2/
rm -f $reflect2/*_test.go
# The package has no modules, so the tree must be in a GOPATH.
mkdir -p .go/src/k8s.io
ln -sfn ../../.. .go/src/k8s.io/kubernetes
export GOPATH="$PWD/.go" PATH="/usr/lib/go-1.19/bin:$PATH" CGO_ENABLED=0 GO111MODULE=off HOME="$folder/source/home"
targets=
for program; do targets="$targets cmd/$program"; done
nice make WHAT="$targets"
for program; do
    strip "_output/bin/$program"
    cp "_output/bin/$program" "$folder/programs/"
done
