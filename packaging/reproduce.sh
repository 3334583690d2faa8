#!/bin/sh
# Builds the binaries of an architecture into target/artifacts/ARCH, builds them again from a copy of the
# sources in another folder, with another $CARGO_HOME and another umask, and compares them byte by byte.
set -eu
cd "$(dirname -- "$0")/.."
arch=$1
rm -rf target/packaging/another
copy=$PWD/target/packaging/another/folder/app-health
mkdir -p "$copy"
git ls-files -z | tar --create --null --files-from - | tar --extract --directory "$copy"
# The copy is no checkout, and this one can get another commit while the binaries are built.
APP_HEALTH_BUILD_COMMIT=$(git rev-parse HEAD)
export APP_HEALTH_BUILD_COMMIT
packaging/build.sh "$arch"
# The crates are not downloaded again.
cargo=$PWD/target/packaging/another/cargo
mkdir "$cargo"
ln -s "${CARGO_HOME:-$HOME/.cargo}"/* "$cargo/"
(umask 077 && CARGO_HOME=$cargo "$copy/packaging/build.sh" "$arch")
for file in app_health_filter.wasm libapp_health_filter_native.so pods/app-health-agent vm/app-health-agent app-health; do
    cmp "target/artifacts/$arch/$file" "$copy/target/artifacts/$arch/$file"
    echo "same bytes: $arch/$file"
done
