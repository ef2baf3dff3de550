/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The rules of Documentation/sequence.md, section 3, for what is posted: two ranks, whose ports have
 * a queue of descriptors each, taken in order; contexts, which queue up to ROOM sequences and run them
 * one at a time; programs in memory, fetched as there is room; programs that are kept. A sequence
 * ends when both ranks have begun it. A rank may post a program's stages one by one
 * where the other has it fetched. FETCHES: who has it fetched, a bit each.
 *
 * A rank that waits for ever is a deadlock; ranks whose numbers mean different things, memory
 * that is read when it may be its owner's again, and a program that is told to have ended twice, are
 * assertions. The switches NO_... each remove one rule.
 */
#ifdef KEPT
#define OPS(c)		4
#define STAGES_OF(c, op) 1
#define END_OF(c, op)	((op) + 1)
#define NR_CONTEXTS	1
#else
#define OPS(c)		((c) == 0 -> 2 : 1)		/* a long one and a small one; a small one */
#define STAGES_OF(c, op) ((c) == 0 && (op) == 0 -> STAGES : 1)
#define END_OF(c, op)	((c) == 0 -> STAGES + (op) : (op) + 1)
#define NR_CONTEXTS	2
#endif

#ifdef KEPT	/* a program is kept and started, then another in its place; the other rank posts them */
#define KEEPS(r)	(FETCHES & (1 << (r)))
#define PROGRAM_OF(op)	((op) / 2 * 2)
#else
#define KEEPS(r)	false
#define PROGRAM_OF(op)	(op)
#endif

#define RANKS		2
#define STAGES		6	/* of which the first have nothing to do, and end alone */
#define IDLE		2
#define QUEUED		5	/* sequences of a context */
#define EVERY		2	/* one of so many stages says COLL_END */
#define PORT		8	/* descriptors of a port, and one */
#define NUMBERS_MAX	7

#define LANE(r, c)	((r) * NR_CONTEXTS + (c))
#define AT(r, c, n)	(LANE(r, c) * NUMBERS_MAX + (n))
#define LANES		(RANKS * NR_CONTEXTS)

mtype = { SEQUENCE, PROGRAM, KEEP, START };

typedef desc {
	mtype kind;
	byte c;
	byte op, stage;
};

typedef context {
	byte base, tail;	/* numbers that have ended; that were taken */
	bit fetching;
	byte from;		/* the stage that is fetched next */
	byte kept;		/* which program */
	bit failed;
	/* what its library knows */
	byte called;		/* operations */
	byte sequences;		/* posted */
	byte ended;		/* as completions say */
	byte fetched_to;
	bit laid_down;		/* a program is in memory */
	byte told;		/* completions with its cookie */
};

desc port[RANKS * PORT];
byte head[RANKS], tail[RANKS];		/* of these, modulo PORT */
context contexts[LANES];
byte what[LANES * NUMBERS_MAX];		/* operation and stage, by number */

#define C		contexts[LANE(r, c)]
#define OTHER		contexts[LANE(1 - r, c)]
#define WHAT(op, stage)	(PROGRAM_OF(op) * 16 + (stage))

#define FETCHED(r, c, op) (STAGES_OF(c, op) > 1 && (FETCHES & (1 << (r))))

#ifdef NO_EVERY
#define SAYS(c, op, stage) ((stage) == STAGES_OF(c, op) - 1)
#else
#define SAYS(c, op, stage) ((stage) == STAGES_OF(c, op) - 1 || (stage) % EVERY == EVERY - 1)
#endif

/* ---- the library ------------------------------------------------------------ */

#ifdef NO_HALF
#define HAS_ROOM	(C.sequences - C.ended < QUEUED)
#else
#define HAS_ROOM	(C.sequences - C.ended < (C.fetched_to > C.ended -> QUEUED / 2 + 1 : QUEUED))
#endif

#define PORT_HAS_ROOM	((tail[r] + PORT - head[r]) % PORT < PORT - 1)

inline put(as, nr)
{
	port[r * PORT + tail[r]].kind = as;
	port[r * PORT + tail[r]].c = c;
	port[r * PORT + tail[r]].op = op;
	port[r * PORT + tail[r]].stage = stage;
	tail[r] = (tail[r] + 1) % PORT;
	C.sequences = C.sequences + nr
}

proctype library(byte r, c)
{
	byte op, stage;

	do
	:: op == OPS(c) || C.failed -> break;
	:: atomic { op < OPS(c) && !C.failed && C.called > op && HAS_ROOM && PORT_HAS_ROOM ->
		if
		:: FETCHED(r, c, op) ->
			C.laid_down = 1;
			put(PROGRAM, STAGES);
			C.fetched_to = C.sequences;
			op++;
		:: else ->
			if
			:: !KEEPS(r) -> put(SEQUENCE, 1);
			:: KEEPS(r) && op % 2 == 0 -> put(KEEP, 1);
			:: KEEPS(r) && op % 2 -> put(START, 1);
			fi;
			stage++;
			if
			:: stage == STAGES_OF(c, op) -> stage = 0; op++;
			:: else -> skip;
			fi;
		fi; }
	od
}

#define WAIT(context, op) \
	(contexts[LANE(r, context)].ended >= END_OF(context, op) || contexts[LANE(r, context)].failed)

/* Rank 0 starts all, rank 1 ends what is on the other context before it begins with the first. */
proctype caller(byte r)
{
#ifdef KEPT
	contexts[LANE(r, 0)].called = OPS(0);
#else
	if
	:: r == 0 ->
		contexts[LANE(r, 0)].called = OPS(0);
		contexts[LANE(r, 1)].called = OPS(1);
	:: else ->
		contexts[LANE(r, 1)].called = OPS(1);
		WAIT(1, 0);
		contexts[LANE(r, 0)].called = OPS(0);
	fi;
	WAIT(1, 0);
#endif
	WAIT(0, OPS(0) - 1);
	!contexts[LANE(r, 0)].laid_down		/* it has its memory again */
}

/* ---- the NIC ----------------------------------------------------------------- */

inline tell_program()
{
	assert(!C.told);
	C.told++;
	C.laid_down = 0
}

inline complete(which, at)
{
	if
	:: SAYS(c, which, at) -> C.ended = C.base;
	:: else -> skip;
	fi;
	if
	:: FETCHED(r, c, which) && at == STAGES - 1 -> tell_program();
	:: else -> skip;
	fi
}

inline take(which, at)
{
	what[AT(r, c, C.tail)] = WHAT(which, at);
	C.tail++
}

#define FIRST		port[r * PORT + head[r]]
#define F		contexts[LANE(r, FIRST.c)]

#ifdef NO_BEHIND
#define ACCEPTED	(F.tail - F.base < QUEUED && (FIRST.kind != PROGRAM || !F.fetching))
#else
#define ACCEPTED	(F.tail - F.base < QUEUED && !F.fetching)
#endif

/* The first descriptor of the port, if its context takes it: nothing behind it is looked at. */
proctype nic(byte r)
{
	byte c;

end:	do
	:: atomic { head[r] != tail[r] && (ACCEPTED || F.failed) ->
		c = FIRST.c;
		if
		:: FIRST.kind == PROGRAM -> C.fetching = 1; C.from = 0;
		:: FIRST.kind == SEQUENCE && !C.failed -> take(FIRST.op, FIRST.stage);
		:: FIRST.kind == KEEP -> C.kept = FIRST.op; take(FIRST.op, 0);
		:: FIRST.kind == START -> take(C.kept, 0);
		:: else -> skip;
		fi;
		head[r] = (head[r] + 1) % PORT;
		c = 0; }
	od
}

#ifdef NO_STOP
#define FETCHES_NOW	(C.fetching && C.tail - C.base <= QUEUED / 2)
#else
#define FETCHES_NOW	(C.fetching && C.tail - C.base <= QUEUED / 2 && !C.failed)
#endif

#define BEGUN_BY_OTHER	(OTHER.base > C.base || (OTHER.base == C.base && OTHER.tail > C.base))
#define ENDS_ALONE	(STAGES_OF(c, 0) > 1 && C.base < IDLE)

proctype runner(byte r, c)
{
	byte n;

end:	do
	:: atomic { FETCHES_NOW ->
		do
		:: C.tail - C.base < QUEUED && C.from < STAGES ->
			assert(C.laid_down);
			take(0, C.from);
			C.from++;
		:: else -> break;
		od;
		C.fetching = C.from < STAGES; }
	:: atomic { !C.failed && C.base < C.tail && (BEGUN_BY_OTHER || ENDS_ALONE) ->
		n = C.base;
#ifdef NO_BINDING
		what[AT(r, c, n)] = (KEEPS(r) -> WHAT(C.kept, 0) : what[AT(r, c, n)]);
#endif
		assert(OTHER.base <= n || what[AT(1 - r, c, n)] == what[AT(r, c, n)]);
		C.base++;
#ifdef KEPT
		C.ended = C.base;
#else
		complete(what[AT(r, c, n)] / 16, what[AT(r, c, n)] % 16);
#endif
		n = 0; }
	:: atomic { C.failed && C.base < C.tail ->		/* flushed, in order */
		n = C.base;
		C.base++;
		complete(what[AT(r, c, n)] / 16, what[AT(r, c, n)] % 16);
		n = 0; }
#ifndef NO_REST
	:: atomic { C.failed && C.base == C.tail && C.fetching -> /* what was not fetched, as one */
#ifndef NO_STOP
		C.fetching = 0;
#endif
		tell_program(); }
#endif
	od
}

#ifdef FAILS
/* At any time: here or there, and then at the other rank. */
proctype fault(byte r)
{
	contexts[LANE(r, 0)].failed = 1;
	contexts[LANE(1 - r, 0)].failed = 1
}
#endif

init
{
	byte r, c;

	atomic {
		for (r : 0 .. RANKS - 1) {
			run caller(r);
			run nic(r);
			for (c : 0 .. NR_CONTEXTS - 1) {
				run library(r, c);
				run runner(r, c);
			}
		}
#ifdef FAILS
		if
		:: run fault(0);
		:: run fault(1);
		fi;
#endif
		r = 0; c = 0;
	}
}
