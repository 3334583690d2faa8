#!/bin/sh
# Writes what each binary of an architecture contains, as CycloneDX, target/artifacts/ARCH/*.cdx.json, and the
# licenses of the crates of other authors in it, target/artifacts/ARCH/*.third-party.txt. The agent contains
# both forms of the filter. sbom.py compares the lists with `cargo tree` and Cargo.lock.
set -eu
cd "$(dirname -- "$0")/.."
arch=$1
gnu=$arch-unknown-linux-gnu
out=$PWD/target/artifacts/$arch
# cargo-cyclonedx writes beside each manifest, and resolves the features of all members together: each
# binary gets a workspace of its own crates.
sources=$PWD/target/packaging/sources
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct)}"
export SOURCE_DATE_EPOCH
rm -rf "$sources"
mkdir -p "$sources" "$out"
git ls-files -z | tar --create --null --files-from - | tar --extract --directory "$sources"

describe() { # name of the list, crate, target, options
    name=$1
    crate=$2
    target=$3
    shift 3
    cp Cargo.toml Cargo.lock "$sources/"
    python3 packaging/sbom.py members --manifest "$sources/Cargo.toml" "$crate"
    (cd "$sources" && "$OLDPWD/.tools/bin/cargo-cyclonedx" cyclonedx --quiet --manifest-path "$crate/Cargo.toml" \
        --format json --spec-version 1.5 --no-build-deps --target "$target" --override-filename "$name" "$@")
    cargo tree --locked --edges normal --prefix none --format '{p}' --package "$crate" --target "$target" "$@" \
        >"$sources/$crate/$name.tree"
}

combine() { # binary, name of the component, lists: crate/name
    binary=$1
    component=$2
    shift 2
    (cd "$sources" && python3 "$OLDPWD/packaging/sbom.py" combine --component "$component" --binary "$out/$binary" \
        --sources "$sources" --lock "$OLDPWD/Cargo.lock" --output "$out/$component.cdx.json" "$@")
    python3 packaging/licenses.py "$out/$component.cdx.json" >"$out/$component.third-party.txt"
    # Each binary contains Rust's standard library, the static ones also musl.
    [ "$component" != app-health-agent-pods ] || cat packaging/licenses/musl.txt >>"$out/$component.third-party.txt"
}

gzip --no-name --best <"$(rustc --print sysroot)/share/doc/rust/COPYRIGHT-library.html" >"$out/rust-standard-library.html.gz"
describe wasm filter wasm32-unknown-unknown
describe module filter-native "$gnu"
describe pods agent "$arch-unknown-linux-musl" --no-default-features
describe vm agent "$gnu"
describe app-health control-plane "$gnu"
filter="filter/wasm.json filter-native/module.json"
# shellcheck disable=SC2086
combine pods/app-health-agent app-health-agent-pods agent/pods.json $filter
# shellcheck disable=SC2086
combine vm/app-health-agent app-health-agent-vm agent/vm.json $filter
combine app-health app-health control-plane/app-health.json
combine app_health_filter.wasm app-health-filter-wasm filter/wasm.json
combine libapp_health_filter_native.so app-health-filter-native filter-native/module.json
