#!/bin/sh
# Checks Cargo.lock for advisories of RustSec and for yanked crates: advisories.sh CARGO-DENY [--required].
# Without the database or the registry it prints NOT CHECKED, and succeeds unless --required is given.
set -eu
cd "$(dirname -- "$0")/.."
mkdir -p target

reachable() { # what, command and arguments
    what=$1
    shift
    "$@" >target/advisories.log 2>&1 || {
        echo "NOT CHECKED: advisories and yanked crates: $what is out of reach: $(grep -m 1 -iE 'fatal|error' target/advisories.log)"
        [ "$required" != --required ] || exit 1
        exit 0
    }
}

required=${2-}
reachable "the database of RustSec" "$1" fetch db
# cargo-deny reads cargo's copy of the registry's index, which this renews.
reachable "the registry" cargo update --dry-run
exec "$1" --locked check --hide-inclusion-graph --disable-fetch advisories
