#!/bin/sh
# Downloads the Debian packages that are the base of the images, for an architecture, into
# target/packaging/base/ARCH: glibc and libgcc, which Envoy and the control plane are linked with. apt checks
# the signatures. Packages of this machine's Debian suite are used.
set -eu
cd "$(dirname -- "$0")/.."
arch=$1
case $arch in
x86_64) debian=amd64 ;;
aarch64) debian=arm64 ;;
esac
out=$PWD/target/packaging/base/$arch
lists=$PWD/target/packaging/lists/$arch
rm -rf "$out"
mkdir -p "$out" "$lists/partial"
set -- -o "APT::Architecture=$debian" -o "APT::Architectures=$debian" -o "Dir::State::Lists=$lists"
apt-get --quiet=2 "$@" update
cd "$out"
# root's downloads are not readable for apt's own user, which it warns about.
apt-get --quiet=2 "$@" -o APT::Sandbox::User=root download libc6 libgcc-s1
# It has the copyright of libgcc-s1.
notice=$(dpkg-deb --field libgcc-s1_*.deb Depends | grep -o 'gcc-[0-9]*-base')
apt-get --quiet=2 "$@" -o APT::Sandbox::User=root download "$notice"
ls "$out"/*.deb
