#!/usr/bin/env bash
# Model checking of the shared-memory protocols (Spin; gcc): every state of every configuration below, or it fails.
#   run.sh small      small configurations, then the mutants: about a minute of one core
#   run.sh full       larger ones too, then the mutants: about a quarter of an hour; states in the heads of the models
#   run.sh mutants    only the seeded errors: each must be found
# An error's trail: spin -a -D... FILE.pml && gcc -DSAFETY -o pan pan.c && ./pan -m100000; spin -t -p -g -D... FILE.pml
# MODEL_MEMORY_MB bounds one search (12000). Nothing is written outside a temporary directory.
set -u

here=$(cd "$(dirname "$0")" && pwd)
memory=${MODEL_MEMORY_MB:-12000}
passed=0
failed=0

fail() {
	failed=$((failed + 1))
	echo "model $1: FAILED, $2"
}

# build NAME FILE KIND FLAGS DEFINES...: leaves ./pan. KIND: safety (assertions, end states) or cycles (no cycle at all: with
# no progress label anywhere every cycle is a non-progress cycle).
build() {
	local name=$1 file=$2 kind=$3 flags=$4
	shift 4
	local search=-DSAFETY
	[ "$kind" = cycles ] && search=-DNP
	rm -f pan* -- *.trail
	if ! spin -a "$@" "$here/$file.pml" >spin.out 2>&1 || [ ! -s pan.c ]; then
		fail "$name" "spin: $(head -n 3 spin.out | tr '\n' ' ')"
		return 1
	fi
	# shellcheck disable=SC2086
	if ! gcc -w $flags $search -DNOFAIR -DMEMLIM="$memory" -o pan pan.c >gcc.out 2>&1; then
		fail "$name" "gcc: $(head -n 3 gcc.out | tr '\n' ' ')"
		return 1
	fi
}

search() {
	local option=
	[ "$1" = cycles ] && option=-l
	# shellcheck disable=SC2086
	./pan -m100000 -w"$2" $option >pan.out 2>&1
}

explored() {
	echo "$(awk '/states, stored/ { print $1; exit }' pan.out) states, depth" \
	    "$(sed -n 's/.*depth reached \([0-9]*\), errors.*/\1/p' pan.out)"
}

# check NAME FILE KIND FLAGS DEFINES...: the whole state space, without an error
check() {
	local name=$1 kind=$3 states why='' unreached
	build "$@" || return
	search "$kind" 22
	local status=$?
	states=$(explored)
	states=${states%% *}
	if grep -q '^pan:1:' pan.out; then
		why=$(sed -n 's/^pan:1: *//p' pan.out | head -n 1)
	elif [ "$status" -ne 0 ] || ! grep -q 'errors: 0$' pan.out; then
		why="pan ended with $status: $(grep -v '^ *$' pan.out | head -n 2 | tr '\n' ' ')"
	elif grep -Eqi 'search depth too small|out of memory|memlim|search not completed|search incomplete|bit statespace|hash-?compact' pan.out; then
		why="the search is not exhaustive: $(grep -Eim 1 'depth too small|memory|memlim|not completed|incomplete|bit statespace|compact' pan.out)"
	elif [ "${states:-0}" -lt 1000 ]; then
		why="only ${states:-0} states: not explored"
	elif [ "$kind" = safety ]; then
		unreached=$(grep -E 'state [0-9]+, "assert\(' pan.out | grep -v '"assert(0)"' | head -n 1)
		[ -n "$unreached" ] && why="an assertion was never reached:$unreached"
	elif ! grep -q 'non-progress cycles.*+' pan.out; then
		why="cycles were not looked for"
	fi
	if [ -n "$why" ]; then
		fail "$name" "$why"
		return
	fi
	passed=$((passed + 1))
	echo "model $name: ok, $(explored)"
}

# mutant NAME FILE KIND DEFINES...: an error must be found
mutant() {
	local name=$1 file=$2 kind=$3
	shift 3
	build "$name" "$file" "$kind" -O0 "$@" || return
	search "$kind" 18
	if ! grep -Eq '^pan:1: *(assertion violated|invalid end state|non-progress cycle)' pan.out; then
		fail "$name" "the seeded error was not found"
		return
	fi
	passed=$((passed + 1))
	echo "model $name: ok, found, $(explored)"
}

small() {
	check lease lease safety -O2
	check lease-threads lease safety -O1 -DT1=2 -DT2=0 -DRESETS=0
	check lease-held lease safety "-O2 -DCOLLAPSE" -DCONC=1 -DT1=2 -DK=1 -DRESETS=0
	check lease-cycles lease cycles -O1 -DK=1 -DSPLIT
	check max_concurrent max_concurrent safety -O1 -DCELLS=3 -DK=1
	check max_concurrent-cycles max_concurrent cycles -O1
	check max_open max_open safety -O1 -DMEMBERS=2
	check max_open-three max_open safety -O1 -DLIMIT=2 -DT1=2 -DK=1 -DMOVES=0 -DSEQS=1
	check max_open-cycles max_open cycles -O1 -DMEMBERS=2 -DMOVES=1
	check changes changes safety -O1
	check changes-cycles changes cycles -O1 -DK=1
	check early early safety -O1
}

full() {
	local flags="-O2 -DCOLLAPSE"
	check lease-split lease safety "$flags" -DSPLIT
	check lease-kills lease safety "$flags" -DKILLS=2 -DPHASES=2
	check lease-one lease safety "$flags" -DCONC=1 -DT1=2 -DK=1 -DKILLS=2 -DSPLIT
	check lease-slots lease safety "$flags" -DCONC=3 -DRMAX=3 -DTOL=1 -DK=1 -DKILLS=2 -DPHASES=2 -DSPLIT
	check lease-same-child lease safety "$flags" -DT1=2 -DT2=0
	check lease-calls lease safety "$flags" -DK=3
	check lease-three lease safety "$flags" -DT1=2 -DK=1
	check max_concurrent-cells max_concurrent safety "$flags" -DCELLS=3
	check max_concurrent-threads max_concurrent safety "$flags" -DT2=2 -DT3=2 -DN=3 -DKILLS=2
	check max_concurrent-both max_concurrent safety "$flags" -DCELLS=3 -DT2=2 -DK=1 -DKILLS=2
	check max_open-members max_open safety "$flags"
	check max_open-threads max_open safety "$flags" -DLIMIT=2 -DT1=2 -DK=1 -DMOVES=1 -DSEQS=1
	check max_open-steal max_open safety "$flags" -DSTEAL -DMEMBERS=2 -DKILLS=2 -DGENS=4 -DSEQS=4
	check max_open-forced max_open safety "$flags" -DFORCED -DMEMBERS=2 -DKILLS=2
	check changes-three changes safety "$flags" -DPROCS=3 -DK=1
	check early-five early safety "$flags" -DK=5
	check early-three early safety "$flags" -DPROCS=3 -DK=2
}

mutants() {
	local m
	for m in BLIND_SEIZE NO_BIT_CHECK COUNTER NO_REAP_SETTLING NO_REAP_RESERVED EXPIRE_RESERVED KEEP_BITS FREE_FIRST BIT_FIRST \
	    APPLY_FIRST NO_ROUND FREE_AT_DEADLINE LATE_APPLY BLIND_RELEASE BLIND_SECOND NO_FAREWELL NO_REAP_HOLDER NO_SECOND_LOOK \
	    FORGET_HOLDER; do
		mutant "lease-$m" lease safety -D$m
	done
	for m in NO_SEQ SEQ_RESET; do
		mutant "lease-$m" lease safety -D$m -DT1=2 -DT2=0
	done
	mutant lease-BLIND_GIVEBACK lease safety -DBLIND_GIVEBACK -DCONC=1 -DT1=2 -DK=1
	mutant lease-LEASES lease safety -DCONC=1 -DLEASES=2 -DKILLS=0
	mutant lease-WAIT lease cycles -DWAIT
	for m in SUM_FIRST NO_TAKEBACK NO_CLEAR CLAIM_FIRST PLAIN_ADD; do
		mutant "max_concurrent-$m" max_concurrent safety -D$m
	done
	mutant max_concurrent-WAIT max_concurrent cycles -DWAIT
	for m in STATE_FIRST NO_INTENT COUNT_FIRST RELEASE_FIRST IGNORE_HALF NO_CLEAR; do
		mutant "max_open-$m" max_open safety -D$m -DMEMBERS=2
	done
	mutant max_open-BLIND_CLEAR max_open safety -DBLIND_CLEAR -DSTEAL -DMEMBERS=2
	mutant max_open-WAIT max_open cycles -DWAIT -DMEMBERS=2
	for m in NO_SETTLE WORD_FIRST SAME_STEP ADD LOOK_ONCE; do
		mutant "changes-$m" changes safety -D$m
	done
	mutant changes-WAIT changes cycles -DWAIT
	for m in WORD_FIRST STORE KEEP_LAST RESHAPE; do
		mutant "early-$m" early safety -D$m
	done
}

mode=${1:-}
case $mode in
small | full | mutants) ;;
*)
	echo "usage: $0 small|full|mutants" >&2
	exit 2
	;;
esac
for tool in spin gcc; do
	command -v "$tool" >/dev/null || { echo "$0: $tool is not installed" >&2; exit 1; }
done
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM HUP
cd "$dir" || exit 1

case $mode in
small) small; mutants ;;
full) small; full; mutants ;;
mutants) mutants ;;
esac
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
