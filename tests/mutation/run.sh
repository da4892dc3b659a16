#!/bin/bash
# Mutation run: puts one small fault (a mutant) at a time into a copy of the product, and looks whether a test fails.
#
#   tests/mutation/run.sh [--check | --likely] [ID...]
#
#   --check   only looks whether each mutant can be applied and compiles, and whether the suites it names exist
#   --likely  runs only the suites that the mutant names
# Otherwise all the rest follows: unit_tests and shm_tests for mutants of core and shm, and httpd_tests for all. (The
# guards look at texts, and the models at protocols that no mutant changes.) Prints `killed by TEST` or `SURVIVED` for
# each mutant and ends with `N killed, N survived`; exit status 0 only if all were killed and nothing was wrong. All tests
# must pass before: what fails anyway would kill every mutant.
#
# The mutants stand in the *.txt files beside this one:
#
#   [ID] the fault in words
#   file: mask.cpp              its name, or the end of its path; found anywhere below mod_circuitbreaker and shm
#   - a line of it              up to three lines, whole but for their indentation, that follow on one another and occur
#   - the next one              so in one place only
#   + what takes their place    nothing: they are taken out
#   httpd_tests: Limits Choice  the suites (or Suite.Test) that are the likeliest to notice, the best first; several such
#                               lines for several programs
#
# Needs what `make test` needs, bash and util-linux. Variables of the environment:
#   MUTATION_WORK        folder of the copy, in which only the first run builds everything (default: below /tmp)
#   LIKELY_LIMIT, LIMIT  seconds for the likely suites of a program and for all of it (300, 1800); later it counts as killed
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
work=${MUTATION_WORK:-/tmp/mod_circuitbreaker-mutation}
only=all
[[ ${1:-} =~ ^--(check|likely)$ ]] && { only=${1#--}; shift; }
wanted=" $* "
killed=0 survived=0 wrong=0 changed=""

fail() { echo "$id: $1"; wrong=$((wrong + 1)); }

# --- a mutant ---

# Lines from stdin without indentation.
trimmed() { sed 's/^[ \t]*//; s/[ \t]*$//'; }

# Sets `path` and `line`, where the lines of `old` begin.
locate() {
    local each at count
    path="" line=0 count=0
    [ "${#old[@]}" -ge 1 ] && [ "${#old[@]}" -le 3 ] || { fail "has ${#old[@]} lines of the original, not 1 to 3"; return 1; }
    for each in $(find mod_circuitbreaker shm -name '*.cpp' -path "*/$file"); do  # (our names have no spaces)
        count=$((count + 1))
        for at in $(trimmed < "$each" | grep -nxF -- "${old[0]}" | cut -d: -f1); do
            [ "$(sed -n "$at,$((at + ${#old[@]} - 1))p" "$each" | trimmed)" = "$(printf '%s\n' "${old[@]}")" ] || continue
            [ -z "$path" ] || { fail "\"${old[0]}\" occurs twice: line $line of $path, line $at of $each"; return 1; }
            path=$each line=$at
        done
    done
    [ "$count" -gt 0 ] || { fail "there is no file $file (a .cpp below mod_circuitbreaker or shm)"; return 1; }
    [ -n "$path" ] || { fail "its lines occur nowhere in $file: \"${old[0]}\""; return 1; }
}

mutated() {  # prints the file with the mutant
    head -n $((line - 1)) "$path"
    [ "${#new[@]}" -eq 0 ] || printf '%s\n' "${new[@]}"
    tail -n +$((line + ${#old[@]})) "$path"
}

# "Limits Sockets.Bind" as a filter of googletest: those with parameters too, which have a prefix and a suffix.
filter_of() {
    local each filter=""
    for each in $1; do
        [[ $each = *.* ]] && filter+="$each:$each/*:*/$each:*/$each/*:" || filter+="$each.*:$each/*:*/$each.*:*/$each/*:"
    done
    echo "${filter%:}"
}

product_make() { env -u MAKEFLAGS -u MFLAGS make BUILD=build "$@"; }

# --- compiling alone (with code: -fsyntax-only does not see a function that is used no more) ---

check() {
    local suite problem
    [ -n "${flags:-}" ] || flags=$(product_make -n -B "build/module/${path%.cpp}.o" | sed -n 's/ -MMD .* -c .*//p')
    [ -n "$flags" ] || { fail "make -n shows no compiler's flags"; return; }
    for suite in $(printf '%s\n' "${likely[@]}" | sed 's/^[a-z_]*://'); do
        grep -qrE "^ *TEST(_F|_P)?\(${suite/./, *}\\b" tests --include='*.cpp' || { fail "there is no suite $suite"; return; }
    done
    problem=$(mutated | $flags -iquote "$(dirname "$path")" -fno-lto -O0 -S -o /dev/null -x c++ - 2>&1) ||
        { fail "does not compile"; echo "$problem"; return; }
    echo "$id: compiles"
}

# --- the copy ---

copy() {
    local each to=$work/tree
    mkdir -p "$to" && exec 9> "$work/lock" || exit 1
    flock -n 9 || { echo "another run uses $work"; exit 1; }
    git ls-files -co --exclude-standard | while read -r each; do [ -f "$each" ] && echo "$each"; done | sort > "$work/files"
    # Only what differs, and with the present time, as make goes by that. A run that was broken off may have left a mutant.
    while read -r each; do
        cmp -s "$each" "$to/$each" || { mkdir -p "$(dirname "$to/$each")" && cp "$each" "$to/$each"; }
    done < "$work/files"
    cd "$to" || exit 1
    find . -type f -not -path './build/*' | sed 's#^\./##' | sort | comm -23 - "$work/files" | xargs -r rm
}

put_back() { [ -z "$changed" ] || cp "$work/original" "$changed"; changed=""; }

# Without LTO: most of the time would be the linker's.
build() { product_make -s -j2 LTO=-O1 "$@" > "$work/build.log" 2>&1 < /dev/null; }

# Runs a program of the copy, in several parts at once, until a test fails; prints that test. `filter` empty: all of it.
run() {  # program, filter, limit
    local parts=1 part each status=0 name pids=()
    [[ $1 != httpd_tests ]] || parts=6  # they mostly wait
    rm -f "$work"/run.[0-9]
    for ((part = 0; part < parts; part++)); do
        GTEST_TOTAL_SHARDS=$parts GTEST_SHARD_INDEX=$part CB_MODULE=$PWD/build/mod_circuitbreaker.so \
            timeout -k 10 "$3" "build/$1" --gtest_fail_fast --gtest_filter="${2:-*}" < /dev/null > "$work/run.$part" 2>&1 9>&- &
        pids+=($!)
    done
    trap 'kill "${pids[@]}" 2> /dev/null; exit 1' INT TERM
    for each in "${pids[@]}"; do
        wait -n || { status=$?; break; }  # for whichever ends first
    done
    if [ "$status" -eq 127 ]; then  # there is none left: two have ended at once, and it told of one
        status=0
        for each in "${pids[@]}"; do wait "$each" || status=$?; done
    fi
    kill "${pids[@]}" 2> /dev/null
    wait 2> /dev/null
    # (A part may have no test.)
    grep -q '^\[=*\] Running [1-9]' "$work"/run.[0-9] || { echo "does not run: $1 ${2:-*}"; return 1; }
    [ "$status" -ne 0 ] || return 0
    name=$(sed -n 's/^\[  FAILED  \] \([^ ,]*\).* ([0-9]* ms)$/\1/p' "$work"/run.[0-9] | head -n 1)
    # It died, or had to be ended: in the test that was begun last.
    [ -n "$name" ] || name="$(sed -n 's/^\[ RUN      \] //p' "$work"/run.[0-9] | tail -n 1) (exit status $status)"
    echo "$1: $name"
    return 1
}

# Builds what the program needs, and runs it. Prints what has killed the mutant; false then, and if it can't be built.
try() {  # program, filter, limit
    local goals=("build/$1")
    [ "$1" != httpd_tests ] || goals+=(build/mod_circuitbreaker.so)
    build "${goals[@]}" || { echo "does not compile: $(grep -m 1 -E 'error|Error' "$work/build.log")"; return 1; }
    run "$@"
}

hunt() {
    local each said
    cp "$path" "$work/original"
    mutated > "$work/mutant"
    changed=$path
    cp "$work/mutant" "$path"
    said=$(
        for each in "${likely[@]}"; do
            try "${each%%:*}" "$(filter_of "${each#*:}")" "${LIKELY_LIMIT:-300}" || exit
        done
        [ "$only" = all ] || exit
        [[ $path = mod_circuitbreaker/httpd/* ]] || { try unit_tests "" "${LIMIT:-1800}" && try shm_tests "" "${LIMIT:-1800}"; } || exit
        try httpd_tests "" "${LIMIT:-1800}"
    )
    put_back
    case $said in
        "") echo "$id: SURVIVED ($fault)"; survived=$((survived + 1)) ;;
        "does not "*) fail "$said" ;;
        *) echo "$id: killed by $said"; killed=$((killed + 1)) ;;
    esac
}

# --- the list ---

one() {
    [ -n "$id" ] || return
    [[ $wanted = "  " || $wanted = *" $id "* ]] || return
    count=$((count + 1))
    [[ $seen != *" $id "* ]] || { fail "there are two of that name"; return; }
    seen+="$id "
    [ "${#likely[@]}" -gt 0 ] || { fail "names no suites"; return; }
    locate || return
    if [ "$only" = check ]; then check; else hunt; fi
}

if [ "$only" != check ]; then
    trap put_back EXIT
    trap 'exit 130' INT TERM
    copy
fi
count=0 seen=" " id="" file="" fault=""
old=() new=() likely=()
while IFS= read -r text; do
    case $text in
        "["*"] "*) one; id=${text%%]*} id=${id#[} fault=${text#*] } file="" old=() new=() likely=() ;;
        "file: "*) file=${text#file: } ;;
        "- "*) old+=("${text#- }") ;;
        "+ "*) new+=("${text#+ }") ;;
        *_tests:\ *) likely+=("${text/: /:}") ;;
        "" | "#"*) ;;
        *) fail "what is \"$text\"?" ;;
    esac
done < <(cat tests/mutation/*.txt)
one
[ "$count" -gt 0 ] && [[ $# -eq 0 || $# -eq $count ]] || { echo "not all of these mutants are there: $*"; exit 1; }
[ "$only" = check ] && echo "$((count - wrong)) right, $wrong wrong" || echo "$killed killed, $survived survived"
[ $((survived + wrong)) -eq 0 ]
