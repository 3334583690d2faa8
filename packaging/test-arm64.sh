#!/bin/sh
# Runs what can run of the programs for arm64 on a machine of another architecture, with qemu: the unit tests
# of the pure crates; then agent and Envoy, which answer a probe with each form of the filter.
set -eu
cd "$(dirname -- "$0")/.."
envoy=$PWD/.tools/envoy-arm64-$(sed -n 's/^envoy_version=//p' justw)/envoy/_bin/envoy
artifacts=$PWD/target/artifacts/aarch64

CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=qemu-aarch64 \
    CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc AR_aarch64_unknown_linux_gnu=aarch64-linux-gnu-ar \
    cargo test --locked --quiet --target aarch64-unknown-linux-gnu --lib --package enum-table \
    --package pacing --package printable --package probe --package filter --package workload-health --package xds --package xds-proxy --package injector --package lint --package explain \
    --package discovery --package address --package envoy-bootstrap --package readiness

for program in pods/app-health-agent vm/app-health-agent app-health; do
    qemu-aarch64 "$artifacts/$program" --version
done
qemu-aarch64 "$envoy" --version

# A network of its own, so that the ports are free, and a user namespace for the kernel's list of interpreters.
for form in wasm native; do
    unshare --user --map-root-user --mount --net sh packaging/probe-arm64.sh "$artifacts/pods/app-health-agent" "$envoy" "$form"
done
