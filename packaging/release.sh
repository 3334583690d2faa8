#!/bin/sh
# Checks that the checkout is ready for a release, builds everything for both architectures, and installs it
# as a check: release.sh VERSION. The results are in target/dist. With --rehearse the version is that of
# Cargo.toml, and neither the checkout need be ready nor the machine able to run every test.
set -eu
cd "$(dirname -- "$0")/.."
# The modes of files do not depend on the user who makes the release.
umask 022
manifest=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)
version=$1
dist=target/dist

fail() {
    echo "release: $*" >&2
    exit 1
}

if [ "$version" = --rehearse ]; then
    version=$manifest
    base=
    : "${APP_HEALTH_BUILD_COMMIT:=$(git describe --always --dirty --abbrev=40 --exclude '*')}"
else
    echo "$version" | grep -qxE '[0-9]+\.[0-9]+\.[0-9]+' || fail "$version is not like 1.2.3: there are no prereleases"
    [ "$version" = "$manifest" ] || fail "Cargo.toml has version $manifest: run ./justw set-version $version and commit it"
    [ -z "$(git status --porcelain)" ] || fail "the checkout has changes that are not committed: git status"
    grep -q "^## \[$version\]" CHANGELOG.md || fail "CHANGELOG.md has no heading: ## [$version]"
    [ "$(id -u)" -eq 0 ] || fail "packages and images are tested in containers, which needs root"
    export APP_HEALTH_TEST_EVERYTHING=1
    base=--locked
    APP_HEALTH_BUILD_COMMIT=$(git rev-parse HEAD)
fi
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH APP_HEALTH_BUILD_COMMIT

just _envoy _helm _packaging-tools _filters
rm -rf "$dist" target/artifacts
mkdir -p "$dist"

# The same files give the same archive.
archive() { # output, folder, names
    output=$1
    folder=$2
    shift 2
    tar --create --directory "$folder" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
        --mode=u+rwX,go+rX,go-w --format=gnu "$@" | gzip --no-name --best >"$output"
}

for arch in x86_64 aarch64; do
    case $arch in
    x86_64) name=amd64 ;;
    aarch64) name=arm64 ;;
    esac
    packaging/build.sh "$arch"
    packaging/sbom.sh "$arch"
    packaging/debian.sh "$arch"
    packaging/base.sh "$arch" $base
    artifacts=target/artifacts/$arch
    cp "$artifacts"/*.deb "$dist/"
    for list in "$artifacts"/*.cdx.json; do
        cp "$list" "$dist/$(basename "$list" .cdx.json)-$version-$name.cdx.json"
    done
    folder=target/packaging/tarball/app-health-$version-$name
    rm -rf "$folder"
    mkdir -p "$folder/systemd"
    cp -r "$artifacts/pods" "$artifacts/vm" "$artifacts/app-health" "$artifacts/app_health_filter.wasm" \
        "$artifacts/libapp_health_filter_native.so" "$artifacts"/*.third-party.txt \
        "$artifacts/rust-standard-library.html.gz" LICENSE CHANGELOG.md \
        target/packaging/stage/reference "$folder/"
    cp envoy-config/vm/*.service envoy-config/vm/*.conf envoy-config/vm/*.env "$folder/systemd/"
    archive "$dist/app-health-$version-$name.tar.gz" "$folder/.." "$(basename "$folder")"
done
packaging/lintian.sh
for chart in app-health app-health-istio; do
    archive "$dist/$chart-$version.tgz" charts "$chart"
done

# Envoy's binaries, as the Python packages contain them.
envoy=$(sed -n 's/^envoy_version=//p' justw)
mkdir -p target/packaging/envoy/x86_64 target/packaging/envoy/aarch64
cp ".tools/envoy-$envoy/envoy/_bin/envoy" target/packaging/envoy/x86_64/
cp ".tools/envoy-arm64-$envoy/envoy/_bin/envoy" target/packaging/envoy/aarch64/
for image in app-health app-health-control-plane app-health-istio; do
    python3 packaging/image.py --image "packaging/images/$image.json" --version "$version" \
        --revision "$APP_HEALTH_BUILD_COMMIT" --source "${APP_HEALTH_IMAGE_SOURCE-}" --root . --output "$dist/$image-$version.oci.tar"
done
(cd "$dist" && sha256sum -- * >../SHA256SUMS && mv ../SHA256SUMS .)
packaging/check-dist.sh "$version" "$APP_HEALTH_BUILD_COMMIT"
if [ "$(id -u)" -eq 0 ]; then
    just _installed "packages released"
else
    echo "NOT TESTED: packages and images in containers: needs root"
fi
echo "target/dist contains release $version"
