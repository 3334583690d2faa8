#!/bin/sh
# Builds the programs of another release of Kubernetes than the tested one, into .tools/kubernetes-VERSION:
# other_version.sh VERSION, for example 1.35.4. Its modules have the numbers that its release has.
set -eu
cd "$(dirname -- "$0")/../.."
version=$1
case $version in
1.*.*) staging=0.${version#1.} ;;
*)
    echo "other_version: $version is not like 1.35.4" >&2
    exit 1
    ;;
esac
minor=${staging#0.}
minor=${minor%%.*}
tools=$PWD/.tools/kubernetes-$version
module=$PWD/target/kubernetes-$version
tested=$(sed -n 's/^kubernetes_version := "\(.*\)"$/\1/p' Justfile)
mkdir -p "$module" "$tools"

# Of go.mod only what names the release: which other modules it needs, Go finds out.
{
    printf 'module kubernetes\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes v%s\n\n' "$version"
    sed -n '/^tool (/,/^)/p; /^replace (/,/^)/p' tests/kubernetes/go.mod |
        sed "s/ v0\.${tested#1.}\$/ v$staging/"
} >"$module/go.mod"
export CGO_ENABLED=0 GOFLAGS=-mod=mod GOTOOLCHAIN=local
programs=$(sed -n '/^tool (/,/^)/s/^[[:space:]]*\(k8s.io.*\)$/\1/p' "$module/go.mod")
flags="-s -w -X k8s.io/component-base/version.gitVersion=v$version -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=$minor"
# shellcheck disable=SC2086
nice go build -C "$module" -buildvcs=false -ldflags="$flags" -o "$tools/" $programs
[ -x "$tools/etcd" ] || cp ".tools/kubernetes-$tested/etcd" "$tools/"
