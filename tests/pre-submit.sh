#!/bin/sh
# Runs `.ci/run` in a fresh clone of the last commit, while another process keeps one core busy.
# `./justw pre-submit` calls it. Paths of sockets are short, so the clone is in the folder for temporary files.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
[ -z "$(git -C "$root" status --porcelain)" ] || echo "pre-submit: uncommitted changes are not tested" >&2
clone=$(mktemp -d "${TMPDIR:-/tmp}/app-health-XXXXXX")
# Some tests run programs as other users, who must be able to read the clone.
chmod 755 "$clone"
sh -c 'while :; do :; done' &
busy=$!
trap 'kill "$busy" 2>/dev/null; rm -rf "$clone"' EXIT
trap 'exit 1' INT TERM HUP
git clone --quiet --no-hardlinks "$root" "$clone/app-health"
# justw has put the tools of this checkout on the PATH; the clone must install its own.
PATH=$(printf '%s' "$PATH" | tr ':' '\n' | grep -vxF "$root/.tools/bin" | paste -sd: -)
export PATH
begin=$(date +%s)
status=0
CI=true bash "$clone/app-health/.ci/run" </dev/null || status=$?
logs=$root/target/pre-submit
rm -rf "$logs"
mkdir -p "$logs"
for folder in test-logs test-runs; do
    [ ! -d "$clone/app-health/target/$folder" ] || cp -R "$clone/app-health/target/$folder" "$logs/"
done
echo "pre-submit: .ci/run took $(($(date +%s) - begin)) s and returned $status; logs are in target/pre-submit"
exit "$status"
