/*
 * lease.pml: probe slots as leases.
 *
 * WHAT. One member: its control word (open / half-open / other) and CONC lease words. T1 threads in child 1, T2 in child 2,
 * the parent (reaps), an operator (RESETS times: any state -> open or closed), a killer (KILLS times: SIGKILL to a child,
 * all its threads stop between two atomic operations). Every thread does up to K actions on a lease of its choice: take it
 * and make a call, expire what stands there, or trip a closed breaker. The real code looks at the leases in order; any
 * order, and giving up at any point, is a superset. A lease that ends by its deadline before the member has answered becomes
 * overdue: its outcome is applied, but it is free only when its holder's call has ended, or at a second deadline.
 *
 * STEPS. One step = one atomic operation on shared memory; what is computed from it afterwards belongs to it.
 *   look      lease[i].load
 *   reserve   lease[i].compare_exchange(v = free, reserved | seq + 1 | pid)
 *   enter     word: load + compare_exchange loop, next(word, "probe asks")
 *   activate  lease[i].compare_exchange(reserved, active)      for the living it cannot fail: asserted
 *   unreserve lease[i].compare_exchange(reserved, free)        the same
 *   phase     lease[i].compare_exchange(active | phase, active | next phase); who loses has lost the lease
 *   seize     lease[i].compare_exchange(v, settling | own pid | holder) the first step of settle, expire and reap; the holder
 *             is noted where the lease is to be overdue
 *   apply     word: load + compare_exchange loop, next(word, "outcome of bit i")
 *   release   lease[i].compare_exchange(settling | own pid | holder, overdue | holder, or free without a holder); for the
 *             living it fails only once, when the holder has said farewell: asserted
 *   farewell  lease[i].compare_exchange(overdue | own pid, free) or (settling | pid | own pid, settling | pid): a holder that
 *             finds its lease taken away, by sequence and pid; the parent does the same for a dead holder
 *   second    lease[i].compare_exchange(v = overdue, free)
 * A load + CAS loop on the word is one step unless -DSPLIT: next() is a pure function of the word, a CAS that succeeds proves
 * that the word has the value it was computed from, a CAS that fails changes nothing, and a refusal is the load alone.
 * -DSPLIT makes load and CAS two steps; it finds the same.
 *
 * ABSTRACTIONS. "Deadline passed" is chosen anew at every look at an active lease (superset of any clock), the second one too.
 * A probe's outcome is chosen; a holder after its deadline is therefore covered. Phases: 0 not sent, 1 sent, 2 provisional
 * success (a provisional failure applies what 1 does and is freed as 2 is), 3 overdue. After its settle a holder settles a second time with the same value (the cleanup
 * on the request pool). Generation and sequence have 3 bits; the sequence starts at 7, so it wraps at the first take.
 * (Fewer values of the sequence than takes while a holder sleeps: mutant NO_SEQ. 15 bits and a deadline leave no such case.)
 *
 * PROPERTIES (assertions; ghosts are marked).
 *   P1 slot bits <= concurrent; slots + successes + failures <= round, or slots + successes <= needed; at every write of
 *      the word
 *   P2 the outcome of a probe is applied at most once, by its own round and taking only, and what a holder applies or gives
 *      back is its own
 *   P3 a lease is never freed, nor overdue, while its bit stands in a half-open word; the bit is never set twice
 *   P4 a lease is free only when its call has ended, its process is dead, the member had answered by the deadline, or the
 *      second deadline has passed; so at most CONC other calls are at the member, over all rounds
 *   P5 at the end, the parent having reaped: leases free, no bit in a half-open word, no call counted
 *   P6 every process ends (no invalid end state); no cycle at all (run with -DNP: no livelock)
 *
 * MUTANTS (-D, each must be found): BLIND_SEIZE NO_BIT_CHECK COUNTER NO_REAP_SETTLING NO_REAP_RESERVED
 * EXPIRE_RESERVED KEEP_BITS FREE_FIRST BIT_FIRST APPLY_FIRST NO_SEQ SEQ_RESET NO_ROUND FREE_AT_DEADLINE LATE_APPLY
 * BLIND_RELEASE BLIND_SECOND BLIND_GIVEBACK NO_FAREWELL NO_REAP_HOLDER NO_SECOND_LOOK FORGET_HOLDER, LEASES=2 with CONC=1;
 * with -DNP: WAIT. Explained where they stand.
 *
 * SEEN (Spin 6.5.2, exhaustive, no error; run.sh names). Where nothing is said: 2 children with a thread each, K=2, CONC=2,
 * round 2, tolerate 0, 2 neutral results, one SIGKILL, one operator's step.
 *   small  lease              as said                                               4,253,367 states, depth 261
 *          lease-threads      both threads in one child, no operator                1,422,764         257
 *          lease-held         CONC=1, 2 + 1 threads, K=1, no operator               1,404,569         216
 *          lease-cycles       K=1, SPLIT, no cycle                                    608,881         232
 *   full   lease-split        SPLIT                                                 8,668,541         309
 *          lease-kills        both children killed, 2 phase changes                 6,065,237         287
 *          lease-one          CONC=1, 2 + 1 threads, K=1, 2 SIGKILLs, SPLIT         8,269,081         238
 *          lease-slots        CONC=3, round 2..3, tolerate 1, K=1, 2 SIGKILLs, SPLIT 2,209,709        238
 *          lease-same-child   both threads in one child                             5,157,867         259
 *          lease-calls        K=3                                                  30,381,781         353
 *          lease-three        2 + 1 threads, K=1                                   37,213,820         229
 *   once   -DT1=2 -DK=1 -DSPLIT -DPHASES=2 (4.7 GB with -DCOLLAPSE)                89,212,662         265
 * All models: small with mutants about 1 minute, full about 12 minutes of one core, 2.3 GB (each search with -DCOLLAPSE).
 */
#ifndef CONC
#define CONC 2			/* concurrent: leases in use, 1..3 */
#endif
#ifndef LEASES
#define LEASES CONC		/* mutant with more: any lease may be taken, not only i < concurrent */
#endif
#ifndef NEED
#define NEED 2			/* successes */
#endif
#ifndef RMAX
#define RMAX 2			/* a round is NEED..RMAX, chosen when it starts; <= 3 */
#endif
#ifndef TOL
#define TOL 0			/* tolerate */
#endif
#ifndef NMAX
#define NMAX 2			/* neutral results that end a round (15) */
#endif
#ifndef PHASES
#define PHASES 1		/* phase changes in a call: 1 (to sent or to the provisional verdict) or 2 (one after the other) */
#endif
#ifndef GENS
#define GENS 2			/* values of the generation, <= 8 */
#endif
#ifndef SEQS
#define SEQS 4			/* values of the sequence, <= 8; more than others can take a lease while one holder sleeps */
#endif
#ifndef T1
#define T1 1
#endif
#ifndef T2
#define T2 1
#endif
#ifndef K
#define K 2
#endif
#ifndef KILLS
#define KILLS 1
#endif
#ifndef RESETS
#define RESETS 1
#endif
#define PARENT 3

/* control word: state:2 gen:3 slots:3 successes:2 failures:2 neutral:2 round:2 */
#define OTHER 0
#define OPEN 1
#define HALF 2
#define ST(w) ((w) & 3)
#define GEN(w) (((w) >> 2) & 7)
#define SLOTS(w) (((w) >> 5) & 7)
#define SUCC(w) (((w) >> 8) & 3)
#define FAIL(w) (((w) >> 10) & 3)
#define NEUT(w) (((w) >> 12) & 3)
#define ROUND(w) (((w) >> 14) & 3)
#define BIT(i) (1 << (5 + (i)))
#define HAS(w, i) ((w) & BIT(i))
#define ONE_SUCC (1 << 8)
#define ONE_FAIL (1 << 10)
#define ONE_NEUT (1 << 12)
#define TO(st, w) ((st) | (((GEN(w) + 1) % GENS) << 2))
#ifdef COUNTER			/* mutant: a number of taken slots instead of a bit each */
#define TAKEN(w) SLOTS(w)
#define SETSLOT(w, i) ((w) + BIT(0))
#define CLRSLOT(w, i) ((w) - BIT(0))
#define MINE(w, i) (SLOTS(w) > 0)
#else
#define TAKEN(w) ((SLOTS(w) & 1) + ((SLOTS(w) >> 1) & 1) + ((SLOTS(w) >> 2) & 1))
#define SETSLOT(w, i) ((w) | BIT(i))
#define CLRSLOT(w, i) ((w) & ~BIT(i))
#ifdef NO_BIT_CHECK		/* mutant: half-open is enough to apply an outcome */
#define MINE(w, i) true
#else
#define MINE(w, i) HAS(w, i)
#endif
#endif

/* lease word: state:2 phase:2 sequence:3 pid:2, and while it is settling who holds it still:2 (0: nobody) */
#define FREE 0
#define RESERVED 1
#define ACTIVE 2
#define SETTLING 3
#define LEASE(st, ph, sq, p) ((st) | ((ph) << 2) | ((sq) << 4) | ((p) << 7))
#define LST(v) ((v) & 3)
#define PHASE(v) (((v) >> 2) & 3)
#define SEQ(v) (((v) >> 4) & 7)
#define PID(v) (((v) >> 7) & 3)
#define HELD(h) ((h) << 9)
#define HOLDER(v) (((v) >> 9) & 3)
#define NOTHELD(v) ((v) & ~HELD(3))
#define OVERDUE 3		/* phase: the deadline has passed and its outcome is applied; the call may still be at the member */
#define ISOVERDUE(v) (LST(v) == ACTIVE && PHASE(v) == OVERDUE)
#define SENT 1
#define NEXTPHASE(v) ((v) + 4)
#ifdef NO_SEQ			/* mutant: the sequence stands still */
#define NEXTSEQ(v) SEQ(v)
#else
#define NEXTSEQ(v) ((SEQ(v) + 1) % SEQS)
#endif

#define SUCCESS 0
#define FAILURE 1
#define NEUTRAL 2
#define BY_PHASE(v) (PHASE(v) == 0 -> NEUTRAL : (PHASE(v) == SENT -> FAILURE : SUCCESS))

int word = OPEN;
short lease[LEASES];
bool dead[4];			/* by pid */
byte running[4];		/* threads that have not ended, by pid */
byte dying;			/* threads of a killed child that have not gone yet; they go first: only fewer states */
bool reaped[4];
bool over;

byte owner[LEASES];		/* ghost: the thread whose lease this is */
bool probe[LEASES];		/* ghost: admitted, in this round, and no outcome applied yet */
byte calling;			/* ghost: a bit for each lease whose call is at the member and is to be counted */
byte inflight;			/* ghost: how many */

#define BEGIN(c) atomic { (dying == 0 || dead[c]) -> if :: dead[c] -> goto killed :: else fi;
#define END }
#ifdef SPLIT
#define CUT(c) } BEGIN(c)
#else
#define CUT(c)
#endif

#define CHECKWORD \
	assert(ST(word) != HALF || (SLOTS(word) < (1 << LEASES) && TAKEN(word) <= CONC && \
	    (TAKEN(word) + SUCC(word) + FAIL(word) <= ROUND(word) || TAKEN(word) + SUCC(word) <= NEED)))	/* P1 */
#define NOLONGERCOUNTED(i) \
	if :: calling & (1 << (i)) -> calling = calling & ~(1 << (i)); inflight-- :: else fi

#if LEASES == 1
#define roundover() probe[0] = false
#elif LEASES == 2
#define roundover() probe[0] = false; probe[1] = false
#else
#define roundover() probe[0] = false; probe[1] = false; probe[2] = false
#endif

/* ghost part of: lease i free */
inline freed(i)
{
	assert(!(calling & (1 << i)));							/* P4 */
	assert(!(ST(word) == HALF && HAS(word, i)));					/* P3 */
	owner[i] = 0
}

/* ghost part of: bit i set for thread t */
inline admitted(i)
{
	assert(!probe[i]);								/* P3 */
	probe[i] = true
}

/* next(word, outcome of bit i), already known: half-open and bit set */
inline apply_outcome(i, out)
{
	assert(probe[i]);								/* P2 */
	probe[i] = false;
	w = CLRSLOT(w, i);
	if
	:: out == SUCCESS ->
		if
		:: SUCC(w) + 1 >= NEED -> word = TO(OTHER, w); roundover()
		:: else -> word = w + ONE_SUCC
		fi
	:: out == FAILURE ->
		if
		:: FAIL(w) + 1 > TOL -> word = TO(OPEN, w); roundover()
		:: else -> word = w + ONE_FAIL
		fi
	:: else ->
		if
		:: NEUT(w) + 1 >= NMAX -> word = TO(OPEN, w); roundover()
		:: else -> word = w + ONE_NEUT
		fi
	fi;
	CHECKWORD
}

#ifdef NO_ROUND			/* mutant: only `concurrent` bounds admissions */
#define ADMITS(w) (TAKEN(w) < CONC)
#else
#define ADMITS(w) (TAKEN(w) < CONC && \
    (TAKEN(w) + SUCC(w) + FAIL(w) < ROUND(w) || TAKEN(w) + SUCC(w) < NEED))
#endif

/* worth an action: looks that find nothing to do are left out */
#ifdef EXPIRE_RESERVED		/* mutant: expiry takes reserved leases too */
#define TOUCHABLE(i) (n > 0 && LST(lease[i]) != SETTLING)
#else
#define TOUCHABLE(i) (n > 0 && (LST(lease[i]) == FREE || LST(lease[i]) == ACTIVE))
#endif

proctype Thread(byte c; byte me)
{
	byte n = K;
	byte i;
	short v;		/* the exact value of the lease as this thread knows it */
	int w;
	byte out;
	byte h;			/* who holds the lease that this settles, and goes on holding it */
	byte whose;		/* ghost: whose lease this settles */
	byte turn;		/* 0 another's lease (expire), 1 own, 2 own once more */

next:	BEGIN(c)
		i = 0; v = 0; w = 0; out = 0; h = 0; turn = 0;
		if
#ifdef WAIT			/* mutant: look until there is something to take */
		:: LST(lease[0]) != FREE -> goto next
#endif
		:: goto done
		:: n > 0 && ST(word) == OTHER -> n--; word = TO(OPEN, word); goto next	/* an ordinary call trips: load + CAS */
		:: TOUCHABLE(0) -> i = 0
#if LEASES > 1
		:: TOUCHABLE(1) -> i = 1
#endif
#if LEASES > 2
		:: TOUCHABLE(2) -> i = 2
#endif
		fi;
		n--;
		v = lease[i];							/* look */
		if
		:: LST(v) == FREE
		:: ISOVERDUE(v) -> goto second					/* expire: its second deadline has passed */
		:: else ->							/* expire: the deadline has passed */
			out = BY_PHASE(v);
#ifndef FREE_AT_DEADLINE	/* mutant: the slot is free although the call may still be at the member */
			h = (PHASE(v) <= SENT -> PID(v) : 0);
#endif
			goto settle
		fi
	END;

#ifdef BIT_FIRST		/* mutant: the bit before the lease */
	goto enter;
#endif
reserve:
	BEGIN(c)
		if
		:: lease[i] == v -> v = LEASE(RESERVED, 0, NEXTSEQ(v), c); lease[i] = v; owner[i] = me
#ifdef BIT_FIRST
		:: else -> v = LEASE(SETTLING, 0, SEQ(v), 0); goto apply	/* somebody else has it: give the bit back */
#else
		:: else -> goto next
#endif
		fi
	END;
#ifdef BIT_FIRST
	goto activate;
#endif
enter:	BEGIN(c)
		w = word;
		CUT(c)
		if
		:: ST(w) == OTHER || (ST(w) == HALF && !ADMITS(w)) -> goto unreserve
		:: ST(w) == OPEN -> goto unreserve				/* open time not over */
		:: ST(w) == OPEN || (ST(w) == HALF && ADMITS(w)) ->
			if
			:: w != word -> goto enter				/* CAS lost */
			:: w == word && ST(w) == HALF -> word = SETSLOT(w, i)
			:: w == word && ST(w) == OPEN ->
#ifdef KEEP_BITS		/* mutant: bits of leases still held are carried into the new round */
				word = SETSLOT(TO(HALF, w), i) | (NEED << 14);
				if
#if CONC > 1
				:: i != 0 && LST(lease[0]) == ACTIVE -> word = word | BIT(0)
				:: i != 1 && LST(lease[1]) == ACTIVE -> word = word | BIT(1)
#endif
				:: else
				fi
#else
				if
				:: word = SETSLOT(TO(HALF, w), i) | (NEED << 14)
#if RMAX > NEED
				:: word = SETSLOT(TO(HALF, w), i) | (RMAX << 14)
#endif
				fi
#endif
			fi
		fi;
		w = 0;
		admitted(i);
		CHECKWORD
	END;
#ifdef BIT_FIRST
	goto reserve;
#endif
activate:
	BEGIN(c)
#ifdef EXPIRE_RESERVED
		if :: lease[i] != v -> goto next :: else fi;
#endif
		assert(lease[i] == v);
		v = LEASE(ACTIVE, 0, SEQ(v), c);
		lease[i] = v;
		calling = calling | (1 << i);
		inflight++;
		assert(inflight <= CONC);						/* P4 */
		turn = 1;
		if
		:: out = NEUTRAL; goto settle						/* nothing sent, the call is over */
		:: skip
		fi
	END;
	BEGIN(c)									/* phase */
		if
		:: lease[i] == v -> v = NEXTPHASE(v); lease[i] = v
#if PHASES == 1
		:: lease[i] == v -> v = NEXTPHASE(NEXTPHASE(v)); lease[i] = v; goto ended
#endif
		:: else -> goto ended							/* expired meanwhile */
		fi;
#if PHASES == 1
		goto ended
#else
		if
		:: goto ended
		:: skip
		fi
#endif
	END;
	BEGIN(c)									/* phase, once more */
		if
		:: lease[i] == v -> v = NEXTPHASE(v); lease[i] = v
		:: else
		fi;
ended:		if
		:: out = SUCCESS
		:: out = FAILURE
		:: out = NEUTRAL
		fi
	END;

settle:
#ifdef APPLY_FIRST		/* mutant: no settling; the word first, then active -> free by exact CAS */
	BEGIN(c)
		if
		:: lease[i] == v -> whose = owner[i]
		:: else -> goto settled
		fi
	END;
	goto apply;
#endif
seize:	BEGIN(c)
#ifdef BLIND_SEIZE		/* mutant: the lease's state is looked at, not its exact value */
		if
		:: LST(lease[i]) == ACTIVE
		:: else -> goto settled
		fi;
#else
		if
		:: lease[i] == v
		:: else ->								/* lost */
			if
			:: turn == 0 -> goto settled
			:: turn != 0 && owner[i] == me -> NOLONGERCOUNTED(i); goto giveback	/* the deadline was first */
			:: turn != 0 && owner[i] != me -> goto giveback
			fi
		fi;
#endif
		assert(turn == 0 || owner[i] == me);					/* P2 */
		assert(turn != 2);							/* P2: twice is harmless */
		whose = owner[i];
		lease[i] = LEASE(SETTLING, 0, SEQ(v), c) | HELD(h);
		if
		:: turn == 1 || PHASE(v) > SENT -> NOLONGERCOUNTED(i)			/* ended, or answered */
		:: else
		fi
#ifdef LATE_APPLY		/* mutant: overdue before its outcome is applied */
		;
		if :: h != 0 -> lease[i] = LEASE(ACTIVE, OVERDUE, SEQ(v), h) :: else fi
#endif
	END;
#ifdef FREE_FIRST		/* mutant: the lease before the bit */
	BEGIN(c)
		lease[i] = LEASE(FREE, 0, SEQ(v), 0)
	END;
#endif
apply:	BEGIN(c)
		w = word;
		CUT(c)
		if
		:: ST(w) == HALF && MINE(w, i) ->
			if
			:: w != word -> goto apply					/* CAS lost */
			:: else ->
				assert(owner[i] == whose && SEQ(lease[i]) == SEQ(v));	/* P2 */
				apply_outcome(i, out)
			fi
		:: else
		fi;
		w = 0
	END;
release:
	BEGIN(c)
#ifdef BIT_FIRST
		if :: LST(v) == SETTLING -> goto next :: else fi;
#endif
#ifdef FREE_FIRST
		skip;
#else
#ifdef APPLY_FIRST
		if :: lease[i] == v :: else -> goto settled fi;
		NOLONGERCOUNTED(i); h = 0;
#else
#ifdef LATE_APPLY
		if :: h != 0 -> goto settled :: else fi;
#endif
		if
#ifdef BLIND_RELEASE		/* mutant: a store; a lease whose holder has gone meanwhile becomes overdue all the same */
		:: h != 0 ->
#else
		:: h != 0 && lease[i] != (LEASE(SETTLING, 0, SEQ(v), c) | HELD(h)) ->
			h = 0;								/* its holder has gone meanwhile */
			goto release
		:: h != 0 && lease[i] == (LEASE(SETTLING, 0, SEQ(v), c) | HELD(h)) ->
#endif
			lease[i] = LEASE(ACTIVE, OVERDUE, SEQ(v), h);
			assert(!(ST(word) == HALF && HAS(word, i)));			/* P3 */
			goto settled
		:: h == 0
		fi;
		assert(lease[i] == LEASE(SETTLING, 0, SEQ(v), c));
#endif
#ifdef SEQ_RESET		/* mutant: a free lease is all zero */
		lease[i] = LEASE(FREE, 0, 0, 0);
#else
		lease[i] = LEASE(FREE, 0, SEQ(v), 0);
#endif
		freed(i);
#endif
settled:	whose = 0; h = 0;
		if
		:: turn == 1 -> turn = 2; out = NEUTRAL; goto settle
		:: else -> goto next
		fi
	END;

giveback:
	BEGIN(c)									/* look: is it overdue, or about to be? */
		w = lease[i];
		if
#ifdef BLIND_GIVEBACK		/* mutant: the process is known, the taking is not */
		:: ISOVERDUE(w) && PID(w) == c
		:: LST(w) == SETTLING && HOLDER(w) == c
#else
		:: ISOVERDUE(w) && PID(w) == c && SEQ(w) == SEQ(v)
#ifndef NO_FAREWELL		/* mutant: who comes while it is settling leaves it to the settler */
		:: LST(w) == SETTLING && HOLDER(w) == c && SEQ(w) == SEQ(v)
#endif
#endif
		:: else -> w = 0; goto settled
		fi;
		assert(owner[i] == me && turn == 1)					/* P2 */
	END;
	BEGIN(c)									/* farewell */
		if
		:: lease[i] != w -> w = 0; goto giveback				/* settled, reaped, or its second deadline */
		:: lease[i] == w && LST(w) == SETTLING -> lease[i] = NOTHELD(w)
		:: lease[i] == w && LST(w) == ACTIVE -> lease[i] = LEASE(FREE, 0, SEQ(w), 0); freed(i)
		fi;
		w = 0;
		goto settled
	END;

second:	BEGIN(c)
		if
		:: lease[i] == v -> NOLONGERCOUNTED(i)					/* by the rule: no longer than that */
#ifdef BLIND_SECOND		/* mutant: that somebody holds it is looked at, not the exact value */
		:: lease[i] != v && LST(lease[i]) == ACTIVE
#endif
		:: else -> goto next
		fi;
		lease[i] = LEASE(FREE, 0, SEQ(v), 0);
		freed(i);
		goto next
	END;

unreserve:
	BEGIN(c)
#ifdef BIT_FIRST
		goto next;
#endif
#ifdef EXPIRE_RESERVED
		if :: lease[i] != v -> goto next :: else fi;
#endif
		assert(lease[i] == v);
		lease[i] = LEASE(FREE, 0, SEQ(v), 0);
		freed(i);
		goto next
	END;

killed:
done:	atomic { (dying == 0 || dead[c]) ->
		if :: dead[c] -> dying-- :: else fi;
		running[c]--; n = 0; i = 0; v = 0; w = 0; out = 0; h = 0; turn = 0; whose = 0 }
}

#if defined(NO_REAP_SETTLING)	/* mutant */
#define REAPABLE(st) ((st) == RESERVED || (st) == ACTIVE)
#elif defined(NO_REAP_RESERVED)	/* mutant */
#define REAPABLE(st) ((st) == SETTLING || (st) == ACTIVE)
#else
#define REAPABLE(st) ((st) != FREE)
#endif
#define UNREAPED(c) (dead[c] && !reaped[c])

proctype Parent()
{
	byte c;
	byte i;
	byte h;
	short v;
	int w;

	do
	:: atomic { dying == 0 && (UNREAPED(1) || UNREAPED(2)) ->
		if
		:: UNREAPED(1) -> c = 1
		:: UNREAPED(2) -> c = 2
		fi;
		i = 0 };
look:		BEGIN(PARENT)
			v = lease[i];
			if
			:: PID(v) == c && REAPABLE(LST(v))
#ifndef NO_REAP_HOLDER		/* mutant: a dead holder is left in a lease that another one settles */
			:: PID(v) != c && LST(v) == SETTLING && HOLDER(v) == c
#endif
			:: else -> goto another
			fi
		END;
		BEGIN(PARENT)								/* seize, free, or take the holder out */
			if
			:: lease[i] == v
#ifdef NO_SECOND_LOOK		/* mutant: who was faster sees to it */
			:: else -> goto another
#else
			:: else -> goto look						/* an expirer was faster: it may be overdue next */
#endif
			fi;
			if
			:: PID(v) != c -> lease[i] = NOTHELD(v); goto another
			:: PID(v) == c && ISOVERDUE(v) -> lease[i] = LEASE(FREE, 0, SEQ(v), 0); freed(i); goto another
			:: PID(v) == c && !ISOVERDUE(v) ->
#ifndef FORGET_HOLDER		/* mutant: a dead settler's lease is freed although its holder lives */
				h = (LST(v) == SETTLING && HOLDER(v) != c -> HOLDER(v) : 0);
#endif
				lease[i] = LEASE(SETTLING, 0, SEQ(v), PARENT) | HELD(h)
			fi
		END;
apply:		BEGIN(PARENT)
			w = word;
			CUT(PARENT)
			if
			:: ST(w) == HALF && MINE(w, i) ->
				if
				:: w != word -> goto apply
				:: else -> apply_outcome(i, NEUTRAL)
				fi
			:: else
			fi;
			w = 0
		END;
release:	BEGIN(PARENT)
#if T1 > 0 && T2 > 0		/* with a single child nobody outlives the dead */
			if
			:: h != 0 && lease[i] != (LEASE(SETTLING, 0, SEQ(v), PARENT) | HELD(h)) ->
				h = 0;							/* its holder has gone meanwhile */
				goto release
			:: h != 0 && lease[i] == (LEASE(SETTLING, 0, SEQ(v), PARENT) | HELD(h)) ->
				lease[i] = LEASE(ACTIVE, OVERDUE, SEQ(v), h);
				assert(!(ST(word) == HALF && HAS(word, i)));		/* P3 */
				goto another
			:: h == 0
			fi;
#endif
			assert(lease[i] == LEASE(SETTLING, 0, SEQ(v), PARENT));
			lease[i] = LEASE(FREE, 0, SEQ(v), 0);
			freed(i);
another:		v = 0; h = 0;
			i++;
			if
			:: i < LEASES -> goto look
			:: else -> reaped[c] = true; c = 0; i = 0
			fi
		END
	:: atomic { dying == 0 && running[1] + running[2] == 0 && !UNREAPED(1) && !UNREAPED(2) ->
		over = true;
		break }
	od;
	atomic {									/* P5 */
		do
		:: i < LEASES -> assert(LST(lease[i]) == FREE); i++
		:: else -> break
		od;
		assert(ST(word) != HALF || SLOTS(word) == 0);
		assert(inflight == 0)
	}
	goto end;
killed:	assert(false);
end:	skip
}

/* equal children are interchangeable: child 1 dies first */
#define KILLABLE(c) (!dead[c] && running[c] > 0 && (c == 1 || T1 != T2 || dead[1]))

/* the killer and the operator */
proctype World()
{
	byte kills;
	byte resets;
	byte c;
	byte i;

	do
	:: atomic { !over && dying == 0 && kills < KILLS && (KILLABLE(1) || KILLABLE(2)) ->
		if
		:: KILLABLE(1) -> c = 1
		:: KILLABLE(2) -> c = 2
		fi;
		kills++;
		dead[c] = true;
		dying = running[c];
		/* ghost: calls of the dead are not in flight; child 1 has the threads 0..T1-1 */
		i = 0;
		do
		:: i < LEASES -> if :: (owner[i] < T1) == (c == 1) -> NOLONGERCOUNTED(i) :: else fi; i++
		:: else -> break
		od;
		i = 0;
		c = 0 }
	:: atomic { !over && dying == 0 && resets < RESETS ->
		resets++;
		if
		:: word = TO(OPEN, word)
		:: word = TO(OTHER, word)
		fi;
		roundover() }
	:: over -> break
	od;
	kills = 0; resets = 0
}

init {
	byte j;

	atomic {
		do
		:: j < LEASES -> lease[j] = LEASE(FREE, 0, SEQS - 1, 0); j++
		:: else -> break
		od;
		running[1] = T1;
		running[2] = T2;
		j = 0;
		do
		:: j < T1 + T2 -> run Thread((j < T1 -> 1 : 2), j); j++
		:: else -> break
		od;
		j = 0;
		run Parent();
		run World()
	}
}
