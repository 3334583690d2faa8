#!/bin/sh
# Runs recipes in lanes: each argument is a lane, its recipes are separated by semicolons and run one
# after another, and all lanes run at the same time, because tests wait more than they compute. Prints
# a line for each recipe, with what its test runner counted, what could not be tested on this machine,
# and the output of those that failed.
set -u
logs=target/test-logs
mkdir -p "$logs"

# The sum of what cargo's test programs counted, or the last line of a recipe that ran none.
counted() { # log
    awk '{ last = $0 }
        /^test result: / { programs++; passed += $4; failed += $6; ignored += $8 }
        END { print programs ? passed " passed, " failed " failed, " ignored " ignored" : last }' "$1"
}

lane() { # recipes, separated by semicolons
    echo "$1" | tr ';' '\n' | (
        status=0
        while read -r recipe; do
            log=$logs/$(echo "${recipe#_}" | tr ' ' '-').log
            begin=$(date +%s)
            # shellcheck disable=SC2086
            if just $recipe >"$log" 2>&1 </dev/null; then result=ok; else result=FAILED status=1; fi
            printf '%-8s %-22s %4d s  %s\n' "$result" "${recipe#_}" "$(($(date +%s) - begin))" "$(counted "$log")"
            if [ "$result" = ok ]; then grep 'NOT TESTED' "$log"; else sed 's/^/    /' "$log"; fi
        done
        exit "$status"
    )
}

pids=
for recipes; do
    lane "$recipes" &
    pids="$pids $!"
done
failed=0
for pid in $pids; do
    wait "$pid" || failed=1
done
exit "$failed"
