/*
 * max_concurrent.pml: CircuitBreakerMaxConcurrent, calls counted in a cell per child.
 *
 * WHAT. CELLS cell indexes, each with a claim word (a pid, or 0 for free) and, for the one member modelled, a cell. Child 1 and
 * child 2 hold the indexes 0 and 1 from the start; child 3 is a replacement that may start at any time, also before the parent
 * has cleared up after a dead one: it claims an index in child_init and makes no call when it finds none. T1, T2, T3 threads,
 * K calls each. The killer ends KILLS children: SIGKILL at any time (their threads stop between two atomic operations), or an
 * orderly exit, which is the same when no thread is left. The parent clears up after the dead.
 *
 * STEPS. One step = one atomic operation on shared memory; what is computed from it afterwards belongs to it.
 *   claim     claim[j].compare_exchange(0, pid)
 *   add       cell[own].fetch_add(1)
 *   sum       cell[j].load, one index after the other, own included; admitted when the sum is <= N
 *   takeback  cell[own].fetch_sub(1), refused
 *   end       cell[own].fetch_sub(1), the call is over
 *   clear     claim[j].load; if it is the dead pid: cell[j].store(0), then claim[j].store(0). The parent alone.
 * Nothing on the request path has a loop that waits or retries.
 *
 * PROPERTIES (assertions; ghosts are marked).
 *   P1 calls admitted in children that live never exceed N (ghost: admitted)
 *   P2 no cell is ever negative; a child touches only a cell whose index it holds
 *   P3 at the end, the parent having cleared up: every cell is 0, and only the living hold an index
 *   P4 every process ends (no invalid end state); no cycle at all (run with -DNP: no livelock)
 * Two contenders for the last place may both be refused, and so may a caller during whose sum one call ends and another begins.
 *
 * MUTANTS (-D, each must be found): SUM_FIRST NO_TAKEBACK NO_CLEAR CLAIM_FIRST PLAIN_ADD, with -DNP WAIT.
 * Explained where they stand.
 *
 * SEEN (Spin 6.5.2, exhaustive, no error; run.sh names). Where nothing is said: 2, 1, 1 threads, K=2, N=2, CELLS=2, one child ends.
 *   small  max_concurrent           CELLS=3 (all three children at once), K=1         288,207 states, depth 157
 *          max_concurrent-cycles    as said, no cycle                                 309,821         215
 *   full   max_concurrent-cells     CELLS=3                                         2,514,567         245
 *          max_concurrent-threads   2, 2, 2 threads, N=3, two children end          5,747,717         237
 *          max_concurrent-both      CELLS=3, 2, 2, 1 threads, K=1, two children end 8,375,138         187
 */
#ifndef N
#define N 2
#endif
#ifndef CELLS
#define CELLS 2			/* >= 2 */
#endif
#ifndef T1
#define T1 2
#endif
#ifndef T2
#define T2 1
#endif
#ifndef T3
#define T3 1
#endif
#ifndef K
#define K 2
#endif
#ifndef KILLS
#define KILLS 1
#endif
#define CHILDREN 3

byte claim[CELLS];		/* a pid, or 0 */
short cell[CELLS];
bool dead[CHILDREN + 1];	/* by pid, from here on */
byte running[CHILDREN + 1];	/* threads that have not ended */
byte dying;			/* threads of a killed child that have not gone yet; they go first: only fewer states */
bool cleared[CHILDREN + 1];
bool over;

byte admitted[CHILDREN + 1];	/* ghost: calls admitted and not over; 0 for a dead child */

#define BEGIN(c) atomic { (dying == 0 || dead[c]) -> if :: dead[c] -> goto killed :: else fi;
#define END }

inline starts(c, t, j)
{
	running[c] = t;
	do
	:: t > 0 -> run Thread(c, j); t--
	:: else -> break
	od
}

/* child c, whose index is own */
proctype Thread(byte c; byte own)
{
	byte n = K;
	byte j;
	short sum;

next:	BEGIN(c)
		j = 0; sum = 0;
		if
		:: goto done
		:: n > 0 -> n--
		fi;
		assert(claim[own] == c);						/* P2 */
#ifdef SUM_FIRST		/* mutant: sum before add */
		goto summing;
#endif
#ifdef PLAIN_ADD		/* mutant: load, add, store */
		sum = cell[own]
	END;
	BEGIN(c)
		cell[own] = sum + 1;
		sum = 0
#else
		cell[own] = cell[own] + 1						/* add */
#endif
	END;
summing:
	BEGIN(c)
		sum = sum + cell[j];							/* sum */
		j++;
		if
		:: j < CELLS -> goto summing
		:: else -> j = 0
		fi;
#ifdef SUM_FIRST
		if
		:: sum + 1 > N -> goto next
		:: else -> sum = 0
		fi
	END;
	BEGIN(c)
		cell[own] = cell[own] + 1;
#else
		if
#ifdef WAIT			/* mutant: sum until there is room */
		:: sum > N -> sum = 0; goto summing
#endif
		:: sum > N -> sum = 0; goto takeback
		:: else -> sum = 0
		fi;
#endif
		admitted[c]++;
		assert(admitted[1] + admitted[2] + admitted[3] <= N)			/* P1 */
	END;
	BEGIN(c)
		admitted[c]--;
		cell[own] = cell[own] - 1;						/* end */
		assert(cell[own] >= 0);							/* P2 */
		goto next
	END;
takeback:
	BEGIN(c)
#ifndef NO_TAKEBACK		/* mutant: what is refused stays counted */
		cell[own] = cell[own] - 1;						/* takeback */
#endif
		assert(cell[own] >= 0);							/* P2 */
		goto next
	END;

killed:
done:	atomic { (dying == 0 || dead[c]) ->
		if :: dead[c] -> dying-- :: else fi;
		running[c]--; n = 0; j = 0; sum = 0 }
}

/* the replacement's child_init */
proctype Replacement(byte c)
{
	byte j;
	byte t = T3;

again:	BEGIN(c)
		if
		:: claim[j] == 0 ->
			claim[j] = c;							/* claim */
			starts(c, t, j);
			j = 0;
			goto end
		:: else -> j++
		fi;
		if
		:: j < CELLS -> goto again
		:: else -> j = 0; t = 0
		fi
	END;
killed:
	atomic { (dying == 0 || dead[c]) ->
		if :: dead[c] -> dying-- :: else fi;
		running[c]--; j = 0; t = 0 };
end:	skip
}

#define UNCLEARED(c) (dead[c] && !cleared[c])

proctype Parent()
{
	byte c;
	byte j;

	do
	:: atomic { dying == 0 && (UNCLEARED(1) || UNCLEARED(2) || UNCLEARED(3)) ->
		if
		:: UNCLEARED(1) -> c = 1
		:: UNCLEARED(2) -> c = 2
		:: UNCLEARED(3) -> c = 3
		fi };
look:		atomic { dying == 0 ->
			if
			:: claim[j] == c
			:: else -> goto another
			fi };
#ifdef CLAIM_FIRST		/* mutant: the index is free before its cells are 0 */
		atomic { dying == 0 -> claim[j] = 0 };
#endif
#ifndef NO_CLEAR		/* mutant */
		atomic { dying == 0 -> cell[j] = 0 };
#endif
		atomic { dying == 0 ->
#ifndef CLAIM_FIRST
			claim[j] = 0;
#endif
another:		j++;
			if
			:: j < CELLS -> goto look
			:: else -> cleared[c] = true; c = 0; j = 0
			fi }
	:: atomic { dying == 0 && running[1] + running[2] + running[3] == 0 &&
	    !UNCLEARED(1) && !UNCLEARED(2) && !UNCLEARED(3) ->
		over = true;
		break }
	od;
	atomic {									/* P3 */
		do
		:: j < CELLS -> assert(cell[j] == 0 && !dead[claim[j]]); j++
		:: else -> break
		od;
		assert(admitted[1] + admitted[2] + admitted[3] == 0)
	}
}

proctype Killer()
{
	byte kills;
	byte c;

	do
	:: atomic { !over && dying == 0 && kills < KILLS && (!dead[1] || !dead[2] || !dead[3]) ->
		if
		:: !dead[1] -> c = 1
		:: !dead[2] -> c = 2
		:: !dead[3] -> c = 3
		fi;
		kills++;
		dead[c] = true;
		dying = running[c];
		admitted[c] = 0;
		c = 0 }
	:: over -> break
	od;
	kills = 0
}

init {
	byte t;

	atomic {
		claim[0] = 1;
		claim[1] = 2;
		t = T1; starts(1, t, 0);
		t = T2; starts(2, t, 1);
		running[3] = 1;
		run Replacement(3);
		run Parent();
		run Killer()
	}
}
