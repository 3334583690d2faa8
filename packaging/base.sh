#!/bin/sh
# Downloads the Debian packages that are the base of the images, for an architecture, into
# target/packaging/base/ARCH: glibc and libgcc, which Envoy and the control plane are linked with, and the
# texts of their licenses. They come from this machine's Debian suite, and apt checks the signatures.
#
# packaging/base.lock has the versions and checksums. Debian's mirrors keep only the newest version of a
# package, so the base can differ from it later: with --locked that is an error, otherwise a notice. With
# --update the file is changed.
set -eu
cd "$(dirname -- "$0")/.."
arch=$1
option=${2-}
case $arch in
x86_64) debian=amd64 ;;
aarch64) debian=arm64 ;;
esac
lock=$PWD/packaging/base.lock
out=$PWD/target/packaging/base/$arch
lists=$PWD/target/packaging/lists/$arch
rm -rf "$out"
mkdir -p "$out" "$lists/partial"
set -- -o "APT::Architecture=$debian" -o "APT::Architectures=$debian" -o "Dir::State::Lists=$lists"
apt-get --quiet=2 "$@" update
cd "$out"
# root's downloads are not readable for apt's own user, which it warns about.
apt-get --quiet=2 "$@" -o APT::Sandbox::User=root download libc6 libgcc-s1 base-files
# It has the copyright of libgcc-s1.
notice=$(dpkg-deb --field libgcc-s1_*.deb Depends | grep -o 'gcc-[0-9]*-base')
apt-get --quiet=2 "$@" -o APT::Sandbox::User=root download "$notice"
for package in *.deb; do
    checksum=$(sha256sum "$package")
    echo "$debian $(dpkg-deb --show --showformat '${Package} ${Version}' "$package") sha256:${checksum%% *}"
done >packages
if [ "$option" = --update ]; then
    { grep -v "^$debian " "$lock"; cat packages; } >"$lock.new"
    mv "$lock.new" "$lock"
elif ! grep "^$debian " "$lock" | diff - packages; then
    echo "base: Debian has other packages (>) than packaging/base.lock (<); packaging/base.sh $arch --update writes them into it" >&2
    [ "$option" != --locked ] || exit 1
fi
