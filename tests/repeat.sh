#!/bin/sh
# Runs all integration tests N times while another process keeps one core busy; stops at the first
# failure. `./justw test-repeat N` calls it.
set -eu
count=$1
sh -c 'while :; do :; done' &
busy=$!
trap 'kill "$busy" 2>/dev/null' EXIT
trap 'exit 1' INT TERM HUP
round=1
while [ "$round" -le "$count" ]; do
    echo "== round $round of $count"
    .tools/venv/bin/python -B tests/runner/flaky.py --begin
    just _it
    # A test that passes only when it is run alone fails the round.
    .tools/venv/bin/python -B tests/runner/flaky.py --none
    round=$((round + 1))
done
echo "$count passed, 0 failed"
