/*
 * max_open.pml: CircuitBreakerMaxOpen, never more than LIMIT members of a balancer open at once.
 *
 * WHAT. A balancer of MEMBERS members: a control word and an intent word each. T1 threads in child 1, T2 in child 2; each
 * tries K times to trip a closed member of its choice. The world, meanwhile: MOVES times a member goes open -> half-open,
 * half-open -> closed, half-open -> open, is reset by the operator (-> closed), or a result is counted in a closed word (its
 * payload changes, so a CAS on it fails). With -DFORCED member 0 may start forced open; the operator may take that back. KILLS
 * times a SIGKILL to a child, whose threads stop between two atomic operations. The parent clears a dead child's intents.
 *
 * STEPS. One step = one atomic operation on shared memory; what is computed from it afterwards belongs to it.
 *   evidence  word[m].load: closed, and its generation
 *   claim     intent[m].load, compare_exchange(v = free, pid | seq + 1); claimed by anybody: no trip now
 *   intent    intent[k].load   } for each k != m, in this order; counted when either says so;
 *   state     word[k].load     } oneself counts as 1
 *   open      word[m].compare_exchange(w, open), again with a fresh w while the generation is the same; no second count
 *   release   intent[m].compare_exchange(own, free | seq); for the living it cannot fail: asserted. In every case: opened,
 *             suppressed, or the breaker moved on
 *   clear     intent[m].load, compare_exchange(v, free | seq): the parent, where v has the dead pid
 *   (-DSTEAL) claim may also take, by exact CAS, what a dead pid holds. Not needed, not wrong.
 *
 * PROPERTIES (assertions; ghosts are marked).
 *   P1 open + half-open + forced open never exceed LIMIT, after every trip (with -DFORCED: nobody forces while it runs)
 *   P2 at the end, the parent having cleared: no intent is left
 *   P3 a release by the living never fails: nobody takes their intent away
 *   P4 every process ends (no invalid end state); no cycle at all (run with -DNP: no livelock)
 * Two that trip at the same instant may both be suppressed; so is who comes before the parent has cleared a dead pid's intent.
 *
 * MUTANTS (-D, each must be found): STATE_FIRST NO_INTENT COUNT_FIRST RELEASE_FIRST IGNORE_HALF NO_CLEAR, with -DSTEAL
 * BLIND_CLEAR, with -DNP WAIT. Explained where they stand.
 *
 * SEEN (Spin 6.5.2, exhaustive, no error; run.sh names). Where nothing is said: 3 members, LIMIT=1, 2 children with a thread
 * each, K=2, MOVES=2, one SIGKILL.
 *   small  max_open           2 members                                             1,132,100 states, depth 189
 *          max_open-three     LIMIT=2, 2 + 1 threads, K=1, no moves, SEQS=1           691,999         177
 *          max_open-cycles    2 members, MOVES=1, no cycle                            456,859         238
 *   full   max_open-members   as said                                               9,746,003         226
 *          max_open-threads   LIMIT=2, 2 + 1 threads, K=1, MOVES=1, SEQS=1          8,997,140         185
 *          max_open-steal     STEAL, 2 members, both children killed, GENS=SEQS=4   1,912,819         218
 *          max_open-forced    FORCED, 2 members, both children killed               1,526,327         203
 * SEQS=1 is an intent without a sequence: nothing here needs one, as only the parent touches a dead pid's intent.
 */
#ifndef MEMBERS
#define MEMBERS 3		/* 2..4 */
#endif
#ifndef LIMIT
#define LIMIT 1
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
#ifndef MOVES
#define MOVES 2
#endif
#ifndef GENS
#define GENS 2			/* values of the generation, <= 4 */
#endif
#ifndef SEQS
#define SEQS 2			/* values of an intent's sequence, <= 4 */
#endif

/* control word: state:2 gen:2 payload:1 */
#define CLOSED 0
#define OPEN 1
#define HALF 2
#define FORCED_OPEN 3
#define ST(w) ((w) & 3)
#define GEN(w) (((w) >> 2) & 3)
#define TO(st, w) ((st) | (((GEN(w) + 1) % GENS) << 2))
#define COUNTED 16
#ifdef IGNORE_HALF		/* mutant: half-open does not count */
#define OUT(w) (ST(w) == OPEN || ST(w) == FORCED_OPEN)
#else
#define OUT(w) (ST(w) != CLOSED)
#endif

/* intent word: pid:2 sequence:2 */
#define INTENT(p, sq) ((p) | ((sq) << 2))
#define PID(v) ((v) & 3)
#define SEQ(v) (((v) >> 2) & 3)

byte word[MEMBERS];
byte intent[MEMBERS];
bool dead[4];			/* by pid, from here on */
byte running[4];		/* threads that have not ended */
byte dying;			/* threads of a killed child that have not gone yet; they go first: only fewer states */
bool cleared[4];
bool over;

#define BEGIN(c) atomic { (dying == 0 || dead[c]) -> if :: dead[c] -> goto killed :: else fi;
#define END }

#define ISOUT(k) (ST(word[k]) != CLOSED -> 1 : 0)
#if MEMBERS == 2
#define ALLOUT (ISOUT(0) + ISOUT(1))
#elif MEMBERS == 3
#define ALLOUT (ISOUT(0) + ISOUT(1) + ISOUT(2))
#else
#define ALLOUT (ISOUT(0) + ISOUT(1) + ISOUT(2) + ISOUT(3))
#endif

inline anymember(x)
{
	if
	:: x = 0
	:: x = 1
#if MEMBERS > 2
	:: x = 2
#endif
#if MEMBERS > 3
	:: x = 3
#endif
	fi
}

proctype Thread(byte c)
{
	byte n = K;
	byte m;
	byte k;
	byte w;			/* the word of m as this thread knows it */
	byte v;			/* the same for the intent of m */
	byte sum;
	bool seen;

next:	BEGIN(c)
		m = 0; k = 0; w = 0; v = 0; sum = 0; seen = false;
		if
		:: goto done
		:: n > 0 -> n--
		fi;
		anymember(m);
		w = word[m];								/* evidence */
		if
		:: ST(w) == CLOSED
		:: else -> goto next
		fi
	END;
#ifdef COUNT_FIRST		/* mutant: count, then claim */
	goto counting;
#endif
#ifndef NO_INTENT		/* mutant: states only */
claim:	BEGIN(c)
		v = intent[m];
		if
		:: PID(v) == 0
#ifdef STEAL
		:: PID(v) != 0 && dead[PID(v)]
		:: PID(v) != 0 && !dead[PID(v)] -> goto next
#else
#ifdef WAIT			/* mutant: look until the intent is free */
		:: else -> goto claim
#else
		:: else -> goto next
#endif
#endif
		fi
	END;
	BEGIN(c)
		if
		:: intent[m] == v -> v = INTENT(c, (SEQ(v) + 1) % SEQS); intent[m] = v	/* claim */
		:: else -> goto next
		fi
	END;
#ifdef COUNT_FIRST
	goto trip;
#endif
#endif
counting:
	BEGIN(c)
#ifdef STATE_FIRST		/* mutant: the state before the intent */
		seen = (k != m && OUT(word[k]))
#elif defined(NO_INTENT)
		seen = false
#else
		seen = (k != m && PID(intent[k]) != 0)					/* intent */
#endif
	END;
	BEGIN(c)
		if
#ifdef STATE_FIRST
		:: k == m || seen || PID(intent[k]) != 0 -> sum++
#else
		:: k == m || seen || OUT(word[k]) -> sum++				/* state */
#endif
		:: else
		fi;
		seen = false;
		k++;
		if
		:: k < MEMBERS -> goto counting
		:: else -> k = 0
		fi;
		if
		:: sum > LIMIT -> sum = 0; goto suppress
		:: else -> sum = 0
		fi
	END;
#ifdef COUNT_FIRST
	goto claim;
#endif
#ifdef RELEASE_FIRST		/* mutant: release, then open */
	BEGIN(c)
		intent[m] = INTENT(0, SEQ(v))
	END;
#endif
trip:	BEGIN(c)
		if
		:: word[m] == w -> word[m] = TO(OPEN, w); assert(ALLOUT <= LIMIT)	/* open, P1 */
		:: word[m] != w && GEN(word[m]) == GEN(w) && ST(word[m]) == CLOSED -> w = word[m]; goto trip
		:: else
		fi
	END;
#if defined(RELEASE_FIRST) || defined(NO_INTENT)
	BEGIN(c)
		goto next
	END;
#endif
suppress:
release:
	BEGIN(c)
#ifdef COUNT_FIRST
		if :: PID(v) != c -> goto next :: else fi;
#endif
#ifndef NO_INTENT
		assert(intent[m] == v);							/* P3 */
		intent[m] = INTENT(0, SEQ(v));						/* release */
#endif
		goto next
	END;

killed:
done:	atomic { (dying == 0 || dead[c]) ->
		if :: dead[c] -> dying-- :: else fi;
		running[c]--; n = 0; m = 0; k = 0; w = 0; v = 0; sum = 0; seen = false }
}

#define UNCLEARED(c) (dead[c] && !cleared[c])

proctype Parent()
{
	byte c;
	byte k;
	byte v;

	do
	:: atomic { dying == 0 && (UNCLEARED(1) || UNCLEARED(2)) ->
		if
		:: UNCLEARED(1) -> c = 1
		:: UNCLEARED(2) -> c = 2
		fi };
look:		atomic { dying == 0 ->
			v = intent[k];
			if
#ifdef NO_CLEAR			/* mutant */
			:: false
#else
			:: PID(v) == c
#endif
			:: else -> goto another
			fi };
		atomic { dying == 0 ->							/* clear */
			if
#ifdef BLIND_CLEAR		/* mutant, with STEAL: a plain store */
			:: intent[k] = INTENT(0, SEQ(v))
#else
			:: intent[k] == v -> intent[k] = INTENT(0, SEQ(v))
			:: else
#endif
			fi;
another:		v = 0;
			k++;
			if
			:: k < MEMBERS -> goto look
			:: else -> cleared[c] = true; c = 0; k = 0
			fi }
	:: atomic { dying == 0 && running[1] + running[2] == 0 && !UNCLEARED(1) && !UNCLEARED(2) ->
		over = true;
		break }
	od;
	atomic {									/* P2 */
		do
		:: k < MEMBERS -> assert(PID(intent[k]) == 0); k++
		:: else -> break
		od
	}
}

/* equal children are interchangeable: child 1 dies first */
#define KILLABLE(c) (!dead[c] && running[c] > 0 && (c == 1 || T1 != T2 || dead[1]))

/* the killer; what else happens to members */
proctype World()
{
	byte kills;
	byte moves;
	byte c;

	do
	:: atomic { !over && dying == 0 && kills < KILLS && (KILLABLE(1) || KILLABLE(2)) ->
		if
		:: KILLABLE(1) -> c = 1
		:: KILLABLE(2) -> c = 2
		fi;
		kills++;
		dead[c] = true;
		dying = running[c];
		c = 0 }
	:: atomic { !over && dying == 0 && moves < MOVES ->
		moves++;
		anymember(c);
		if
		:: ST(word[c]) == OPEN -> word[c] = TO(HALF, word[c])
		:: ST(word[c]) == HALF -> word[c] = TO(OPEN, word[c])
		:: word[c] = TO(CLOSED, word[c])
		:: ST(word[c]) == CLOSED -> word[c] = word[c] ^ COUNTED
		fi;
		c = 0 }
	:: over -> break
	od;
	kills = 0; moves = 0
}

init {
	byte j;

	atomic {
		running[1] = T1;
		running[2] = T2;
		do
		:: j < T1 + T2 -> run Thread((j < T1 -> 1 : 2)); j++
		:: else -> break
		od;
		j = 0;
#ifdef FORCED
		if
		:: word[0] = FORCED_OPEN
		:: skip
		fi;
#endif
		run Parent();
		run World()
	}
}
