#!/bin/sh
# Makes the Debian packages of an architecture from what packaging/build.sh and packaging/sbom.sh made:
# target/artifacts/ARCH/*.deb. The command reference needs the filters of this machine too. A test of upgrades
# gives another version and another folder.
set -eu
cd "$(dirname -- "$0")/.."
arch=$1
version=${2:-$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)}
out=${3:-target/artifacts/$arch}
case $arch in
x86_64) debian=amd64 ;;
aarch64) debian=arm64 ;;
esac
stage=target/packaging/stage
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct)}"
export SOURCE_DATE_EPOCH

rm -rf "$stage"
mkdir -p "$stage/units" "$stage/doc" "$out"
cargo run --locked --quiet --package packaging --bin command-reference -- "$stage/reference"

# The packages install programs in /usr/bin.
unit() { # source, destination
    sed -e '1,/^\[/{/^#/d}' -e 's,/usr/local/bin/app-health,/usr/bin/app-health,' "envoy-config/vm/$1" >"$stage/$2"
}
unit app-health-agent.service units/app-health-agent.service
unit app-health-discovery.service units/app-health-discovery.service
unit app-health-agent-envoy.conf doc/envoy.conf
grep -v '^#' envoy-config/vm/app-health.sysusers.conf >"$stage/units/app-health-agent.sysusers"

changelog() { # package
    printf '%s (%s-1) unstable; urgency=medium\n\n' "$1" "$version"
    printf '  * Release %s. The changes are in CHANGELOG.md.\n\n' "$version"
    printf ' -- app-health developers <maintainers@app-health.io>  %s\n' "$(date -u -R -d "@$SOURCE_DATE_EPOCH")"
}

for crate in agent control-plane; do
    case $crate in
    agent) package=app-health-agent licenses=app-health-agent-vm ;;
    control-plane) package=app-health-discovery licenses=app-health ;;
    esac
    changelog "$package" >"$stage/doc/$package.changelog"
    gzip --no-name --best <"target/artifacts/$arch/$licenses.third-party.txt" >"$stage/doc/$package.third-party.txt.gz"
    cp "target/artifacts/$arch/rust-standard-library.html.gz" "$stage/doc/"
    rm -f "$out/${package}_"*.deb
    CARGO_TARGET_DIR="$PWD/target/packaging" .tools/bin/cargo-deb deb --quiet --no-build --no-strip --locked --package "$crate" \
        --target "$arch-unknown-linux-gnu" --deb-version "$version-1" \
        --output "$out/${package}_$version-1_$debian.deb"
done
