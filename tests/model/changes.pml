/*
 * changes.pml: the numbers of a member's changes (shm/changes.hpp).
 *
 * WHAT. A control word (generation and a payload) and the word `noted`: of which change, by its generation, which number it
 * has. PROCS processes make K changes each, of any kind at any time: a change that has a number (+1), a window of another shape
 * that has none (+2), or a count in the payload alone. KILLS of them die between two atomic operations. A reader asks for the
 * number of the present word READS times.
 *
 * STEPS. One step = one atomic operation on shared memory; what is computed from it afterwards belongs to it.
 *   seen      word.load
 *   settle    noted.load; if it is not of `seen`: word.load (gone on? from the start), noted.compare_exchange(that, of seen),
 *             noted.load again
 *   win       word.compare_exchange(seen, next), from the start if it fails
 *   take      noted.compare_exchange(of seen, of next)
 *   look      noted.load, word.load, noted.load again if they differ; from the start if that differs
 *
 * PROPERTIES (assertions; ghosts are marked).
 *   P1 who wins has the number that its change has in the order of the control word's changes (ghost)
 *   P2 `noted` is never behind by more than one change, never ahead, and never wrong: after every step on it
 *   P3 the reader's number is that of the word it has read
 *   P4 every process ends (no invalid end state); no cycle at all (run with -DNP: no livelock)
 *
 * MUTANTS (-D, each must be found): NO_SETTLE (the word is changed before its last change has a number), WORD_FIRST (the word is
 * not read again), SAME_STEP (another shape takes one generation, as a reset does), ADD (a counter that the winner counts up), LOOK_ONCE (the reader does not look again), with -DNP WAIT (who finds
 * `noted` behind waits for the one who is to write it).
 *
 * SEEN (Spin 6.5.2, exhaustive, no error; run.sh names)
 *   small  changes          2 processes, K=2, one SIGKILL          3,855,512 states, depth 116
 *          changes-cycles   the same with K=1, no cycle               71,115         117
 *   full   changes-three    3 processes, K=1                       7,836,871         113
 */
#ifndef PROCS
#define PROCS 2
#endif
#ifndef K
#define K 2
#endif
#ifndef KILLS
#define KILLS 1
#endif
#ifndef READS
#define READS 1
#endif
#ifdef SAME_STEP		/* mutant */
#define SHAPE_STEP 1
#else
#define SHAPE_STEP 2
#endif
#define CHANGE 0		/* what a changer is about to do */
#define SHAPE 1
#define COUNT 2

byte generation;		/* of the control word; nothing wraps here */
byte payload;
byte noted_generation;
byte noted_number;
byte kills = KILLS;

byte number_of[32];		/* ghost: by generation, what its number must be */

#define NEXT_NUMBER(g) (noted_number + ((g) - noted_generation == 1 -> 1 : 0))
#define NOTED_IS_RIGHT assert(noted_number == number_of[noted_generation] && noted_generation <= generation)

proctype changer()
{
	byte k, kind, seen_generation, seen_payload, n_generation, n_number, number, to;
	bool is_won;

	do
	:: k == K -> break
	:: k < K ->
again:		atomic {			/* seen */
			seen_generation = generation;
			seen_payload = payload
		}
		if
		:: kind = CHANGE; to = seen_generation + 1
		:: kind = SHAPE; to = seen_generation + SHAPE_STEP
		:: kind = COUNT; to = seen_generation; goto win
		:: kills > 0 -> kills--; goto dead
		fi;
#ifndef NO_SETTLE
settle:		atomic {
			n_generation = noted_generation;
			n_number = noted_number;
			if
			:: n_generation == seen_generation -> number = n_number; goto win
			:: else
			fi
		}
#ifndef WORD_FIRST
		atomic {
			if
			:: generation != seen_generation -> goto again
			:: else
			fi
		}
#endif
#ifdef WAIT
		goto settle;
#endif
		atomic {
			if
			:: noted_generation == n_generation && noted_number == n_number ->
				noted_number = NEXT_NUMBER(seen_generation);
				noted_generation = seen_generation;
				NOTED_IS_RIGHT
			:: else
			fi
		}
		goto settle;
#else
		number = noted_number;
#endif
win:		atomic {
			is_won = (generation == seen_generation && payload == seen_payload);
			if
			:: is_won && kind == COUNT -> payload = 1 - payload
			:: is_won && kind != COUNT ->
				generation = to;
				number_of[to] = number_of[seen_generation] + (kind == CHANGE -> 1 : 0)
			:: else
			fi
		}
		if
		:: !is_won -> goto again
		:: else
		fi;
		if
		:: kills > 0 -> kills--; goto dead
		:: skip
		fi;
		if
		:: kind != COUNT ->
			atomic {			/* take */
#ifdef ADD
				noted_number = noted_number + (kind == CHANGE -> 1 : 0);
				noted_generation = to;
				assert(noted_number == number_of[to])
#else
				n_number = number + (to - seen_generation == 1 -> 1 : 0);
				assert(n_number == number_of[to]);	/* P1 */
				if
				:: noted_generation == seen_generation && noted_number == number ->
					noted_generation = to;
					noted_number = n_number;
					NOTED_IS_RIGHT
				:: else
				fi
#endif
			}
		:: else
		fi;
		k++
	od;
dead:	skip
}

proctype reader()
{
	byte reads, n_generation, n_number, word;

	do
	:: reads == READS -> break
	:: reads < READS ->
look:		atomic { n_generation = noted_generation; n_number = noted_number }
		word = generation;
#ifdef LOOK_ONCE
		assert(n_number + (word - n_generation == 1 -> 1 : 0) == number_of[word]);
		reads++;
		goto next;
#endif
		if
		:: word == n_generation -> assert(n_number == number_of[word])	/* P3 */
		:: else ->
			atomic {
				if
				:: noted_generation != n_generation || noted_number != n_number -> goto look
				:: else -> assert(NEXT_NUMBER(word) == number_of[word])	/* P3 */
				fi
			}
		fi;
		reads++;
next:		skip
	od
}

init {
	atomic {
		byte p;
		for (p : 1 .. PROCS) { run changer() }
		run reader()
	}
}
