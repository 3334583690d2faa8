# Every how-to of the project. Start it with ./justw, which makes a fresh machine ready first.

set positional-arguments

deny_version := "0.20.2"
wasm_file := "target/wasm32-unknown-unknown/wasm/app_health_filter.wasm"

# List the recipes
default:
    @just --list --unsorted

# Show the main job: an application, Envoy with the filter, the agent, and a live table (--once: one round)
[group('run')]
demo *arguments: build
    @target/debug/demo "$@"

# Build the filter: target/wasm32-unknown-unknown/wasm/app_health_filter.wasm
[group('build')]
wasm:
    cargo build --locked --quiet --package filter --target wasm32-unknown-unknown --profile wasm
    @test -z "$(find filter probe Cargo.toml .cargo -type f -newer {{ wasm_file }})" || touch {{ wasm_file }}

# Build filter and agent as they are shipped: target/release/app-health-agent, with the filter inside
[group('build')]
release: wasm
    cargo build --locked --release --package agent

# Build filter, agent and demo
[group('build')]
build: wasm
    cargo build --locked --package agent --package tests --bins

# Everything that CI checks
[group('test')]
test: check-fmt clippy clippy-wasm doc unit deny it

# Unit tests of every crate
[group('test')]
unit: wasm
    cargo test --locked --workspace --lib --bins

# The filter in wasmtime, the agent, and everything against the real Envoy; a name picks tests: ./justw it e2e_http
[group('test')]
it *arguments: build
    cargo test --locked --package tests --test it -- "$@"

# Only what runs against the real Envoy
[group('test')]
e2e: (it "e2e_")

# Only what runs the image in real containers: root, dockerd, docker, iptables, busybox; says so where it cannot
[group('test')]
test-containers: (it "containers")

# Validate every shipped Envoy configuration with the real Envoy
[group('test')]
envoy-validate: (it "e2e_config")

# Rewrite golden files from what the code says now; read the diff
[group('test')]
bless:
    UPDATE_GOLDEN=1 just it

# The long runs: a million requests, minutes of load
[group('test')]
stress *arguments: build
    cargo test --locked --release --package tests --test stress -- --ignored --nocapture "$@"

# Measure an area (probe, filter): a table, and target/bench/<area>.json
[group('test')]
bench area="probe" *arguments: wasm _wrk
    @shift; cargo bench --locked --package tests --bench {{ area }} -- "$@"

_wrk:
    @tests/benches/get-wrk

# Format
[group('lint')]
fmt:
    cargo fmt --all

# Check the format
[group('lint')]
check-fmt:
    cargo fmt --all --check

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
