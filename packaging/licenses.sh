#!/bin/sh
# Writes the licenses of the crates of other authors that are in each program of an architecture:
# target/artifacts/ARCH/*.third-party.txt. The agent contains the filter.
set -eu
cd "$(dirname -- "$0")/.."
arch=$1
gnu=$arch-unknown-linux-gnu
out=target/artifacts/$arch
mkdir -p "$out"

licenses() { # crate, target, options
    manifest=$1/Cargo.toml
    target=$2
    shift 2
    .tools/bin/cargo-about about generate --locked --offline --fail --manifest-path "$manifest" \
        --config packaging/about.toml --target "$target" "$@" packaging/about.hbs
}

filter() {
    printf '\n\nThe filter, as WebAssembly and as a dynamic module of Envoy:\n\n'
    licenses filter wasm32-unknown-unknown
    licenses filter-native "$gnu"
}

{
    licenses agent "$arch-unknown-linux-musl" --no-default-features
    filter
} >"$out/app-health-agent-pods.third-party.txt"
{
    licenses agent "$gnu"
    filter
} >"$out/app-health-agent-vm.third-party.txt"
licenses control-plane "$gnu" >"$out/app-health.third-party.txt"
