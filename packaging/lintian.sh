#!/bin/sh
# Checks the Debian packages with lintian: no error and no warning, except for the overrides in
# packaging/debian/*/lintian-overrides.
set -eu
cd "$(dirname -- "$0")/.."
exec lintian --allow-root --no-cfg --fail-on error,warning --tag-display-limit 0 target/artifacts/*/*.deb
