#!/bin/bash
# Runs every test and ends with "N passed, N failed"; exit status 0 only if nothing failed and everything ran.
# Each program must say how many tests it ran: one that runs none, or dies, has failed.
set -uo pipefail

build=${BUILD:-build}
passed=0
failed=0

count() {  # name, passed, failed
    echo "== $1: $2 passed, $3 failed"
    passed=$((passed + $2))
    failed=$((failed + $3))
}

googletest() {  # name, program, arguments...
    local name=$1 log
    shift
    log=$(mktemp)
    echo "== $name"
    "$@" 2>&1 < /dev/null | tee "$log" | grep -v -E '^\[ (RUN|      OK)' || true
    local status=${PIPESTATUS[0]}
    local ok bad skipped
    ok=$(grep -c '^\[       OK \]' "$log")
    bad=$(grep -c -E '^\[  FAILED  \] [^ ]+ \([0-9]+ ms\)$|^\[  FAILED  \] [^ ]+, where .* \([0-9]+ ms\)$' "$log")
    skipped=$(grep -c -E '^\[  SKIPPED \] .* \([0-9]+ ms\)$' "$log")
    bad=$((bad + skipped))  # nothing here may be skipped
    # It died, or ran nothing: that is a failure of its own.
    if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then bad=1; fi
    if [ $((ok + bad)) -eq 0 ]; then bad=1; fi
    count "$name" "$ok" "$bad"
    rm -f "$log"
}

counting() {  # name, program that ends with "N passed, N failed"
    local name=$1 log last
    shift
    log=$(mktemp)
    echo "== $name"
    "$@" < /dev/null 2>&1 | tee "$log"
    local status=${PIPESTATUS[0]}
    last=$(tail -n 1 "$log")
    rm -f "$log"
    if [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]] && [ $((BASH_REMATCH[1] + BASH_REMATCH[2])) -gt 0 ]; then
        local bad=${BASH_REMATCH[2]}
        if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then bad=1; fi
        count "$name" "${BASH_REMATCH[1]}" "$bad"
    else
        count "$name" 0 1
    fi
}

counting guards tests/guards/run.sh
googletest core "$build/unit_tests"
googletest "shared memory" "$build/shm_tests"
counting model tests/model/run.sh small
googletest harness "$build/harness_tests"
googletest httpd "$build/httpd_tests"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
