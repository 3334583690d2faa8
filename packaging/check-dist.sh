#!/bin/sh
# Unpacks every artifact in target/dist as a user does, and starts each program, those for arm64 with qemu:
# check-dist.sh VERSION COMMIT.
set -eu
cd "$(dirname -- "$0")/.."
version=$1
commit=$2
dist=$PWD/target/dist
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT

says() { # expected first line, program and arguments
    expected=$1
    shift
    "$@" --version >"$here/said"
    [ "$(head -n 1 "$here/said")" = "$expected" ] && grep -qx "commit: $commit" "$here/said" || {
        echo "check-dist: $* --version is not $expected of $commit:" >&2
        cat "$here/said" >&2
        exit 1
    }
    echo "installed: $*" | sed "s,$here/,,"
}

(cd "$dist" && sha256sum --quiet --check SHA256SUMS)
for names in app-health/app-health-control-plane app-health-istio/app-health-istio; do
    chart=${names%/*}-$version.tgz
    target/helm/helm lint --strict --quiet "$dist/$chart"
    target/helm/helm template --namespace app-health any-release "$dist/$chart" | grep -q "[ \"]${names#*/}:$version" || {
        echo "check-dist: $chart does not render the image of version $version" >&2
        exit 1
    }
    echo "rendered: $chart"
done
for name in amd64 arm64; do
    qemu=
    [ "$name" = "$(dpkg --print-architecture)" ] || qemu=qemu-aarch64
    tar -xzf "$dist/app-health-$version-$name.tar.gz" -C "$here"
    folder=$here/app-health-$version-$name
    # shellcheck disable=SC2086
    {
        says "app-health-agent $version" $qemu "$folder/pods/app-health-agent"
        says "app-health-agent $version" $qemu "$folder/vm/app-health-agent"
        says "app-health $version" $qemu "$folder/app-health"
        for package in app-health-agent app-health-discovery; do
            dpkg-deb -x "$dist/${package}_$version-1_$name.deb" "$here/$package-$name"
        done
        says "app-health-agent $version" $qemu "$here/app-health-agent-$name/usr/bin/app-health-agent"
        says "app-health $version" $qemu "$here/app-health-discovery-$name/usr/bin/app-health"
    }
done
