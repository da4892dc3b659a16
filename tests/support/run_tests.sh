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
    local name=$1 program=$2 shards=$3 at_once=$4 shard status ok=0 bad=0 passes failures skipped test died=0 logs
    local known ran=0 parts=()
    logs=$(mktemp -d)
    echo "== $name"
    known=$("$program" --gtest_list_tests < /dev/null | grep '^  ' | grep -vc '^  DISABLED_')
    for ((shard = 0; shard < shards; shard++)); do
        [ "$shard" -lt "$at_once" ] || wait -n
        ( GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$shard GTEST_SHUFFLE=1 GTEST_RANDOM_SEED=$((shard + 1)) \
              "$program" < /dev/null > "$logs/$shard" 2>&1
          echo $? > "$logs/$shard.status" ) &
        parts+=($!)
    done
    wait "${parts[@]}" 2> /dev/null  # those that have not been waited for already
    for ((shard = 0; shard < shards; shard++)); do
        touch "$logs/$shard"
        status=$(cat "$logs/$shard.status" 2>/dev/null)
        status=${status:-255}
        passes=$(grep -c '^\[       OK \]' "$logs/$shard")
        failures=$(grep -c -E '^\[  FAILED  \] .* \([0-9]+ ms\)$' "$logs/$shard")
        skipped=$(grep -c -E '^\[  SKIPPED \] .* \([0-9]+ ms\)$' "$logs/$shard")
        ran=$((ran + passes + failures + skipped))
        for test in $(not_installed < "$logs/$shard"); do
            skipped=$((skipped - 1))
            skipped_tests+=("$test")
        done
        ok=$((ok + passes))
        bad=$((bad + failures + skipped))
        if [ "$status" -ne 0 ] && [ "$failures" -eq 0 ]; then bad=$((bad + 1)); died=1; fi  # it died
        if [ "$status" -ne 0 ] || [ "$skipped" -gt 0 ] || [ "$died" -ne 0 ]; then
            grep -v -E '^\[ RUN|^\[       OK|^\[---' "$logs/$shard" | tail -n 400
        fi
    done
    if [ "$ran" -ne "$known" ] || [ "$known" -eq 0 ]; then
        echo "$ran of $known tests have run"
        [ "$bad" -gt 0 ] || bad=1
    fi
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
( tests/model/run.sh small < /dev/null > "$model_log" 2>&1; echo $? > "$model_log.status" ) &
model=$!
finished_model() { cat "$model_log"; return "$(cat "$model_log.status")"; }

counting guards tests/guards/run.sh
googletest core "$build/unit_tests" 2 2
googletest "shared memory" "$build/shm_tests" 2 2
googletest harness "$build/harness_tests" 6 6  # these and httpd's mostly wait
googletest httpd "$build/httpd_tests" 32 8
wait "$model" 2> /dev/null  # unless it has been waited for already
counting model finished_model
rm -f "$model_log" "$model_log.status"

if [ ${#skipped_tests[@]} -gt 0 ]; then
    printf 'skipped, as its program is not installed: %s\n' "${skipped_tests[@]}"
    echo "${#skipped_tests[@]} skipped"
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
