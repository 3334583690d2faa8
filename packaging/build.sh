#!/bin/sh
# Builds the binaries that are released for an architecture (x86_64 or aarch64) into target/artifacts/ARCH:
# both forms of the filter, the agent for Pods (pods/), the agent for virtual machines (vm/) and the control
# plane. Other folders and another $CARGO_HOME give the same bytes: see packaging/reproduce.sh.
set -eu
cd "$(dirname -- "$0")/.."
arch=$1
gnu=$arch-unknown-linux-gnu
musl=$arch-unknown-linux-musl
wasm=wasm32-unknown-unknown
out=target/artifacts/$arch
# A separate folder: the flags differ from those of other recipes.
export CARGO_TARGET_DIR="$PWD/target/packaging"
export CARGO_INCREMENTAL=0

# Panic messages contain the paths of sources.
remap="--remap-path-prefix=$PWD=/app-health --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
for target in "$gnu" "$musl" "$wasm"; do
    export "CARGO_TARGET_$(echo "$target" | tr a-z- A-Z_)_RUSTFLAGS=$remap"
done
if [ "$arch" != "$(uname -m)" ]; then
    cross=$arch-linux-gnu-gcc
    for target in "$gnu" "$musl"; do
        export "CARGO_TARGET_$(echo "$target" | tr a-z- A-Z_)_LINKER=$cross"
        export "CC_$(echo "$target" | tr - _)=$cross" "AR_$(echo "$target" | tr - _)=$arch-linux-gnu-ar"
    done
fi

# cargo leaves an output that would not change as old as it is; the agent's build refuses a filter that is older than its sources.
build() { # output, arguments of cargo
    output=$1
    shift
    cargo "$@"
    touch "$output"
}

rustup --quiet target add "$gnu" "$musl"
filter=$CARGO_TARGET_DIR/$wasm/wasm/app_health_filter.wasm
module=$CARGO_TARGET_DIR/$gnu/release/libapp_health_filter_native.so
# All versions of the filter have the same file name: cargo would keep the file of another version that was built
# after this one.
cargo clean --quiet --package filter --target "$wasm" --profile wasm
cargo clean --quiet --package filter-native --target "$gnu" --release
build "$filter" rustc --locked --package filter --target "$wasm" --profile wasm --crate-type cdylib
build "$module" build --locked --release --package filter-native --target "$gnu"
export APP_HEALTH_BUILD_FILTER="$filter" APP_HEALTH_BUILD_MODULE="$module"
cargo build --locked --release --package agent --no-default-features --target "$musl"
cargo build --locked --release --package agent --target "$gnu"
cargo build --locked --release --package control-plane --target "$gnu"

mkdir -p "$out/pods" "$out/vm"
install -m 0644 "$filter" "$module" "$out/"
install "$CARGO_TARGET_DIR/$musl/release/app-health-agent" "$out/pods/"
install "$CARGO_TARGET_DIR/$gnu/release/app-health-agent" "$out/vm/"
install "$CARGO_TARGET_DIR/$gnu/release/app-health" "$out/"
