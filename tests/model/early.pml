/*
 * early.pml: rounds of probes that begin before the open time is over (shm/early.hpp).
 *
 * WHAT. A control word (generation, state, end of the open time) and the word `kept` (generation, end). PROCS processes take K
 * steps each, of any kind at any time, from the control word that they have seen: trip it, begin a round (early, or because the
 * open time is over), fail it, give it a window of another shape, or end the open time (a passing health check). KILLS of them
 * die between two atomic operations. Ends are numbers that are never used twice, so that one can't pass for another.
 *
 * PROPERTIES
 *   P1 an early round that fails leads back to the end that it began in
 *   P2 every process ends (no invalid end state). A step that finds `kept` or the control word changed is lost and counts, so
 *      there is no cycle: in the code it is made again, from what is there then.
 *
 * MUTANTS (-D, each must be found): WORD_FIRST (`kept` is read after the control word), STORE (`kept` is written whatever it
 * holds), KEEP_LAST (after the control word), RESHAPE (a window of another shape leaves `kept` as it is, and `kept` counts only
 * if its generation is the round's).
 *
 * SEEN (Spin 6.5.2, exhaustive, no error; run.sh names)
 *   small  early          2 processes, K=4, one SIGKILL          1,635,517 states, depth 112
 *   full   early-five     the same with K=5                      9,248,028         136
 *          early-three    3 processes, K=2                     13,940,278          94
 */
#ifndef PROCS
#define PROCS 2
#endif
#ifndef K
#define K 4
#endif
#ifndef KILLS
#define KILLS 1
#endif
#define CLOSED 0
#define OPEN 1
#define EARLY 2			/* half-open before the open time was over */
#define HALF 3
#define DUE 0			/* an end that has passed */

byte generation;		/* of the control word; nothing wraps here */
byte state;
byte end;			/* open; 0: it is over */
byte kept_generation;
byte kept_end;
byte next_end = 1;
byte kills = KILLS;

byte began_in;			/* ghost: the end that the present early round began in */

#define SAME (generation == s_generation && state == s_state && end == s_end)

proctype process()
{
	byte k, s_generation, s_state, s_end, k_generation, k_end, to_generation, to_state, to_end, w_end;

	do
	:: k == K -> break
	:: k < K ->
		atomic {			/* nothing of the round before counts */
			to_generation = 0; to_state = 0; to_end = 0; w_end = 0;
			s_generation = 0; s_state = 0; s_end = 0; k_generation = 0; k_end = 0
		}
#ifdef WORD_FIRST
		atomic { s_generation = generation; s_state = state; s_end = end }
		atomic { k_generation = kept_generation; k_end = kept_end }
#else
		atomic { k_generation = kept_generation; k_end = kept_end }
		atomic { s_generation = generation; s_state = state; s_end = end }
#endif
		if
		:: kills > 0 -> kills--; goto dead
		:: s_state == CLOSED || s_state == HALF ->	/* trip, or fail as usual */
			atomic {
				to_generation = s_generation + 1; to_state = OPEN; to_end = next_end; next_end++
			}
		:: s_state == OPEN && s_end == DUE -> to_generation = s_generation + 1; to_state = HALF
		:: s_state == OPEN && s_end != DUE -> to_generation = s_generation + 1; to_state = EARLY; w_end = s_end
		:: s_state == OPEN && s_end != DUE -> to_generation = s_generation; to_state = OPEN; to_end = DUE
		:: s_state == EARLY -> to_generation = s_generation + 1; to_state = CLOSED
		:: s_state == EARLY ->		/* fail: the end is read after the control word */
#ifdef RESHAPE
			atomic { to_end = (kept_generation == s_generation -> kept_end : 99) };
#else
			to_end = kept_end;
#endif
			to_generation = s_generation + 1; to_state = OPEN
		:: s_state == EARLY ->		/* reshape */
			to_generation = s_generation + 2; to_state = EARLY;
#ifndef RESHAPE
			w_end = k_end
#endif
		fi;
#ifndef KEEP_LAST
		if
		:: w_end != 0 && !(k_generation == to_generation && k_end == w_end) ->
#ifdef STORE
			atomic { kept_generation = to_generation; kept_end = w_end }
#else
			atomic {
				if
				:: kept_generation == k_generation && kept_end == k_end ->
					kept_generation = to_generation; kept_end = w_end
				:: else ->
					k++; goto next
				fi
			}
#endif
		:: else
		fi;
#endif
		if
		:: kills > 0 -> kills--; goto dead
		:: skip
		fi;
		atomic {			/* the CAS */
			if
			:: SAME ->
				if
				:: s_state == OPEN && to_state == EARLY -> began_in = s_end
				:: s_state == EARLY && to_state == OPEN -> assert(to_end == began_in)	/* P1 */
				:: else
				fi;
				generation = to_generation; state = to_state; end = to_end
			:: else
			fi
		}
#ifdef KEEP_LAST
		if
		:: w_end != 0 -> atomic { kept_generation = to_generation; kept_end = w_end }
		:: else
		fi;
#endif
		k++;
next:		skip
	od;
dead:	skip
}

init {
	atomic {
		byte p;
		for (p : 1 .. PROCS) { run process() }
	}
}
