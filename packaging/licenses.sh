#!/bin/sh
# Prints the licenses of the crates of other authors that are in a program:
# licenses.sh agent|control-plane ARCH [OPTIONS OF cargo-about…]. The agent contains the filter.
set -eu
cd "$(dirname -- "$0")/.."
program=$1
gnu=$2-unknown-linux-gnu
shift 2

licenses() { # crate, target, options
    manifest=$1/Cargo.toml
    target=$2
    shift 2
    .tools/bin/cargo-about about generate --locked --offline --fail --manifest-path "$manifest" \
        --config packaging/about.toml --target "$target" "$@" packaging/about.hbs
}

licenses "$program" "$gnu" "$@"
if [ "$program" = agent ]; then
    printf '\n\nThe filter, as WebAssembly and as a dynamic module of Envoy:\n\n'
    licenses filter wasm32-unknown-unknown
    licenses filter-native "$gnu"
fi
