#!/bin/sh
# Measures what a newcomer waits for: a fresh clone with empty caches, then the demo, the tests and the
# compilation of `./justw bench probe`. Prints a table and writes target/bench/first-run.json. Downloads
# some 2 GB. `./justw bench first-run` calls it; `./justw bench first-run demo` measures the demo only.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
parts=${*:-demo test bench}
work=$(mktemp -d "${TMPDIR:-/tmp}/app-health-first-run.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
rows=$work/rows
: >"$rows"

# Empty caches. The Rust toolchain and the configuration of cargo, pip and Go stay those of the machine.
export CARGO_HOME="$work/cargo" GOPATH="$work/go" GOCACHE="$work/go-build" PIP_NO_CACHE_DIR=1
export RUSTUP_HOME="${RUSTUP_HOME:-$HOME/.rustup}"
mkdir -p "$CARGO_HOME"
for file in config.toml config credentials.toml; do
    [ ! -f "$HOME/.cargo/$file" ] || cp "$HOME/.cargo/$file" "$CARGO_HOME/"
done

row() { # figure, value, unit, bar
    holds=$(awk "BEGIN { print ($2 <= $4) ? \"true\" : \"false\" }")
    printf '%-48s %8.1f %-4s at most %6.1f  %s\n' "$1" "$2" "$3" "$4" "$([ "$holds" = true ] && echo holds || echo 'DOES NOT HOLD')"
    printf '  {"name": "%s", "value": %.1f, "unit": "%s", "bar": %.1f, "holds": %s},\n' "$1" "$2" "$3" "$4" "$holds" >>"$rows"
}

clone() { # name; leaves the shell in the clone
    git clone --quiet "$root" "$work/$1"
    cd "$work/$1"
    rm -rf "$CARGO_HOME/registry" "$GOPATH" "$GOCACHE" 2>/dev/null || { chmod -R u+w "$GOPATH" && rm -rf "$GOPATH"; }
}

timed() { # figure, bar in seconds, command
    figure=$1 bar=$2
    shift 2
    before=$(date +%s.%N)
    "$@" >"$work/log" 2>&1 || { tail -n 40 "$work/log" >&2; echo "first-run: failed: $*" >&2; exit 1; }
    row "$figure" "$(echo "$before $(date +%s.%N)" | awk '{ print $2 - $1 }')" s "$bar"
}

for part in $parts; do
    clone "$part"
    case $part in
    demo)
        timed "fresh clone: ./justw demo --once" 120 ./justw demo --once
        row "target/ after the demo" "$(du -sm target | cut -f1)" MB 1500
        ;;
    test) timed "fresh clone: ./justw test" 720 ./justw test ;;
    bench)
        ./justw wasm >/dev/null 2>&1
        cargo fetch --locked --quiet
        timed "compilation of ./justw bench probe" 180 cargo bench --locked --package benches --no-default-features --bench probe --no-run
        ;;
    *) echo "first-run: unknown part: $part (demo, test, bench)" >&2; exit 64 ;;
    esac
    cd "$root"
    chmod -R u+w "$work/$part" && rm -rf "${work:?}/$part"
done

mkdir -p "$root/target/bench"
{ echo '['; sed '$ s/,$//' "$rows"; echo ']'; } >"$root/target/bench/first-run.json"
