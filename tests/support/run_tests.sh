#!/bin/bash
# Runs every test and ends with "N passed, N failed"; exit status 0 only if nothing failed and everything ran.
# Each program must say how many tests it ran: one that runs none, or dies, has failed.
# With MPM=all in the environment, tests that don't depend on the MPM run on each of the three, not on mpm_event alone.
set -uo pipefail

case "${MPM:-}" in
    "" | all) ;;
    *) echo "MPM=$MPM: either MPM=all, or nothing"; exit 2 ;;
esac

build=${BUILD:-build}
passed=0
failed=0
skipped_tests=()  # those of real backends and a real browser that aren't installed; nothing else may be skipped

count() {  # name, passed, failed
    echo "== $1: $2 passed, $3 failed"
    passed=$((passed + $2))
    failed=$((failed + $3))
}

# The skipped tests of RealServers and RealBrowser whose reason, two lines up, is that a program is not installed.
not_installed() {
    awk '/^\[ RUN /{ reason = 0 }
         /^The program is not installed: /{ reason = 1 }
         /^\[  SKIPPED \] Real(Servers|Browser)\..* \([0-9]+ ms\)$/{ if (reason) print $4 }'
}

# Tests wait for conditions, so none disturbs another: several parts at once, each in an order of its own, so that tests
# of one kind don't all run together.
googletest() {  # name, program, parts, how many at once
    local name=$1 program=$2 shards=$3 at_once=$4 shard status ok=0 bad=0 skipped allowed test died=0 logs
    logs=$(mktemp -d)
    echo "== $name"
    for ((shard = 0; shard < shards; shard++)); do echo "$shard"; done |
        xargs -P "$at_once" -I @ bash -c '
            GTEST_TOTAL_SHARDS=$1 GTEST_SHARD_INDEX=$2 GTEST_SHUFFLE=1 GTEST_RANDOM_SEED=$(($2 + 1)) "$3" \
                < /dev/null > "$4/$2" 2>&1
            echo $? > "$4/$2.status"' - "$shards" @ "$program" "$logs"
    for ((shard = 0; shard < shards; shard++)); do
        status=$(cat "$logs/$shard.status")
        ok=$((ok + $(grep -c '^\[       OK \]' "$logs/$shard")))
        failures=$(grep -c -E '^\[  FAILED  \] .* \([0-9]+ ms\)$' "$logs/$shard")
        skipped=$(grep -c -E '^\[  SKIPPED \] .* \([0-9]+ ms\)$' "$logs/$shard")
        allowed=0
        for test in $(not_installed < "$logs/$shard"); do
            allowed=$((allowed + 1))
            skipped_tests+=("$test")
        done
        skipped=$((skipped - allowed))
        bad=$((bad + failures + skipped))
        if [ "$status" -ne 0 ] && [ "$failures" -eq 0 ]; then bad=$((bad + 1)); died=1; fi  # it died
        if [ "$status" -ne 0 ] || [ "$skipped" -gt 0 ] || [ "$died" -ne 0 ]; then
            grep -v -E '^\[ RUN|^\[       OK|^\[---' "$logs/$shard" | tail -n 400
        fi
    done
    [ $((ok + bad)) -gt 0 ] || bad=1  # it ran nothing
    count "$name" "$ok" "$bad"
    rm -rf "$logs"
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

# One process that only computes, beside tests that mostly wait.
model_log=$(mktemp)
tests/model/run.sh small < /dev/null > "$model_log" 2>&1 &
model=$!
finished_model() { cat "$model_log"; return "$model_status"; }

counting guards tests/guards/run.sh
googletest core "$build/unit_tests" 2 2
googletest "shared memory" "$build/shm_tests" 2 2
googletest harness "$build/harness_tests" 6 6  # these and httpd's mostly wait
googletest httpd "$build/httpd_tests" 32 8
wait "$model"
model_status=$?
counting model finished_model
rm -f "$model_log"

if [ ${#skipped_tests[@]} -gt 0 ]; then
    printf 'skipped, as its program is not installed: %s\n' "${skipped_tests[@]}"
    echo "${#skipped_tests[@]} skipped"
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
