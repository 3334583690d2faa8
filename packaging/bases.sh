#!/bin/sh
# Prints the sizes of the bases that were considered for the images of this machine's architecture, without
# compression. It needs root for debootstrap, and what `./justw release-rehearsal` left in target/.
set -eu
cd "$(dirname -- "$0")/.."
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
# shellcheck disable=SC2016
mirror=$(apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' | sed -n "s/^$suite main //p" | head -n 1)

row() { # description; a tar file on stdin
    printf '%7.1f MB  %s\n' "$(wc -c | awk '{ print $1 / 1e6 }')" "$1"
}

# shellcheck disable=SC2016
unshare --mount sh -euc '
mount -t overlay overlay -o "lowerdir=$1/usr:/usr" /usr
debootstrap --force-check-gpg --variant=minbase "$3" "$2" "$4"
' sh "$PWD/.tools/containers" "$here/debian" "$suite" "$mirror" >/dev/null
rm -rf "$here"/debian/var/cache/apt/* "$here"/debian/var/lib/apt/lists/* "$here"/debian/var/log/*
tar --create --directory "$here/debian" . | row "Debian, minbase"
rm -rf "$here"/debian/usr/share/doc "$here"/debian/usr/share/man "$here"/debian/usr/share/locale "$here"/debian/usr/share/info
tar --create --directory "$here/debian" . | row "Debian, minbase without documents and translations, similar to debian:$suite-slim"
mkdir "$here/libraries"
for package in "target/packaging/base/$(uname -m)"/libc6_*.deb "target/packaging/base/$(uname -m)"/libgcc-s1_*.deb; do
    dpkg-deb -x "$package" "$here/libraries"
done
tar --create --directory "$here/libraries" . | row "glibc and libgcc, as packaged"
PYTHONPATH=packaging python3 -B -c '
import sys, pathlib, image
sys.stdout.buffer.write(image.base(pathlib.Path(sys.argv[1]).glob("*.deb"), 0).tar())
' "target/packaging/base/$(uname -m)" | row "the base of the images"
programs="target/packaging/envoy/$(uname -m)/envoy target/artifacts/$(uname -m)/app-health"
# shellcheck disable=SC2086
needed=$(ldd $programs | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p; s/^\s*\(\/[^ ]*\) (.*/\1/p' | sort -u)
# shellcheck disable=SC2086
tar --create --dereference --absolute-names $needed | row "only the libraries that Envoy and the control plane name"
