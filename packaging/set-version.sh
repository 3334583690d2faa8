#!/bin/sh
# Sets the version of the next release in Cargo.toml, and where manifests, documents and tests repeat it.
# tests/workspace/version.rs finds what this script does not.
set -eu
cd "$(dirname -- "$0")/.."
new=$1
echo "$new" | grep -Eqx '[0-9]+\.[0-9]+\.[0-9]+' || {
    echo "set-version: $new is not like 1.2.3" >&2
    exit 1
}
old=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)
sed -i "s/^version = \"$old\"\$/version = \"$new\"/" Cargo.toml
old=$(echo "$old" | sed 's/\./\\./g')
git ls-files -z '*.md' '*.yaml' '*.rs' ':!CHANGELOG.md' |
    xargs -0 sed -Ei "s/((app-health|app-health-control-plane):|newTag: )$old/\\1$new/g"
# The Helm chart.
for chart in charts/*/Chart.yaml; do
    [ ! -f "$chart" ] || sed -Ei "s/^((version|appVersion): \"?)$old(\"?)\$/\1$new\3/" "$chart"
done
cargo update --workspace --offline --quiet
