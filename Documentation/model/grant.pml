/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The grant and window rules of Documentation/sequence.md, sections 2 to 5.
 *
 * One process runs one lane of pulses of one rank (instance), one process is
 * one message on its way from rank to rank (message), one carries credit
 * between two ranks (courier). All messages are under way at once and overtake
 * each other freely: that is the wire, exactly once and unordered. Data is not
 * modelled, only who waits for whom; a message is one unit of room.
 *
 * run.sh gives the sizes and the program (programs.pml) by -D. A deadlock is an
 * invalid end state; everything else that may not happen is an assertion.
 * The switches NO_... each remove one rule.
 */
#define WINDOWED	(NUMBERS > WINDOW)	/* else nothing is ever held back */

#define RANK(c, r)	((c) * RANKS + (r))
#define PAIR(c, a, b)	(RANK(c, a) * RANKS + (b))
#define LANE(c, r, p)	(RANK(c, r) * PULSES + (p))
#define KEY(c, n, p, r, s) \
	(((((c) * NUMBERS + (n)) * PULSES + (p)) * RANKS + (r)) * SLOTS + (s))

#include "programs.pml"

#ifndef IS_MEMBER
#define IS_MEMBER(c, r)	true
#endif

mtype = {
	INLINE,		/* goes at once */
	LARGE,		/* asks, then needs room at the receiver */
	EMPTY,		/* 0 bytes: asks, needs no room */
	REFERENCE,	/* asks, is read by the receiver from where it lies */
	EAGER,		/* goes at once if there is room for a copy; else as LARGE */
	LENT,		/* the same, asks, and its copy is read by the receiver; else as REFERENCE */
};

mtype = { NOWHERE, BLOCKS, STREAMED };	/* where a message goes: STREAMED is its place itself */

typedef slot {
	mtype kind;
	byte from;
	byte id;		/* of the send, in the sender's program */
	mtype room;
	bit opened;		/* the sender has come to its send */
	bit asked;		/* RTS is here */
	bit filled;		/* the message is here */
	bit taken;		/* by reference: read */
	bit lent;		/* its copy is there */
#ifdef FORWARD
	bit held;		/* what it sends on is not here yet */
#endif
};

slot slots[CONTEXTS * NUMBERS * PULSES * RANKS * SLOTS];

byte base[CONTEXTS * RANKS];		/* oldest number not ended */
byte oldest[CONTEXTS * RANKS];		/* oldest live pulse of it */
byte cursor[CONTEXTS * RANKS * PULSES];	/* first slot not combined */
byte sending[CONTEXTS * RANKS * PULSES]; /* bit per open send */

byte blocks_free[RANKS];		/* of the unit, for all contexts of a rank */
byte copies_free[RANKS];		/* the same, for what it sends unasked */

#if WINDOWED
byte seen[CONTEXTS * RANKS * RANKS];	/* [a, b]: the newest base of b that a knows */
short wanted[CONTEXTS * RANKS * RANKS];	/* [a, b]: numbers whose end a will tell b */
short credits[CONTEXTS * RANKS * RANKS]; /* [a, b]: CREDIT on the wire, by base */
short asks[CONTEXTS * RANKS * RANKS];	/* [a, b]: CREDIT_WANTED on the wire, by number */
#endif

/* A second context has one pulse only, to keep the search small. */
#define PULSES_OF(c)	((c) == 0 -> PULSES : 1)

#define IS_LIVE(c, r, n, p) \
	(base[RANK(c, r)] == (n) && oldest[RANK(c, r)] <= (p) && (p) < oldest[RANK(c, r)] + LIVE)

/* ---- room ---------------------------------------------------------------- */

inline free_room(m, r)
{
	if
	:: m.room == BLOCKS -> blocks_free[r]++;
	:: m.room != BLOCKS -> skip;
	fi;
	m.room = NOWHERE;
}

/* ---- window and credit --------------------------------------------------- */

#define M	slots[KEY(c, n, p, to, s)]	/* of a process `message` */

/* What is outside of this would be dropped, or find no entry. */
inline check_entry(c, r, n, p)
{
	assert(base[RANK(c, r)] <= n && n < base[RANK(c, r)] + WINDOW);
	assert(n == base[RANK(c, r)] || p < LIVE);
	assert(n > base[RANK(c, r)] || p < oldest[RANK(c, r)] + 2 * LIVE)
}

#if WINDOWED

#define IN_WINDOW(c, a, b, n)	((n) < seen[PAIR(c, a, b)] + WINDOW)

inline hear(c, me, peer, newest)	/* a packet of peer, with its base, is here */
{
	if
	:: newest > seen[PAIR(c, me, peer)] -> seen[PAIR(c, me, peer)] = newest;
	:: else -> skip;
	fi
}

#ifdef NO_PIGGYBACK
#define NEAR_END(c, a, b, n)	false
#else
#define NEAR_END(c, a, b, n)	((n) >= seen[PAIR(c, a, b)] + WINDOW / 2)
#endif

inline want(c, me, peer, n)		/* peer is to hear when n has ended here */
{
	if
	:: n < base[RANK(c, me)] ->
		credits[PAIR(c, me, peer)] = credits[PAIR(c, me, peer)] | (1 << base[RANK(c, me)]);
	:: else ->
		wanted[PAIR(c, me, peer)] = wanted[PAIR(c, me, peer)] | (1 << n);
	fi
}

inline answer(c, me, n)		/* n has ended here */
{
	peer = 0;
	do
	:: peer < RANKS && (wanted[PAIR(c, me, peer)] & (1 << n)) ->
		wanted[PAIR(c, me, peer)] = wanted[PAIR(c, me, peer)] & ~(1 << n);
		credits[PAIR(c, me, peer)] = credits[PAIR(c, me, peer)] | (1 << base[RANK(c, me)]);
		peer++;
	:: peer < RANKS && !(wanted[PAIR(c, me, peer)] & (1 << n)) -> peer++;
	:: peer == RANKS -> break;
	od;
	peer = 0
}

/* The first packet of message M leaves and arrives; the sender's base goes with it. */
inline leave()
{
	carried = base[RANK(c, M.from)];
	near_end = NEAR_END(c, M.from, to, n)
}

inline arrive()
{
	check_entry(c, to, n, p);
	hear(c, to, M.from, carried);
	if
	:: near_end -> want(c, to, M.from, n);
	:: else -> skip;
	fi;
	near_end = 0;
	carried = 0
}

/* Any one of the packets in a set. */
inline pick(set, i)
{
	i = 0;
	do
	:: set & (1 << i) -> break;
	:: set >> (i + 1) -> i++;
	od;
	set = set & ~(1 << i)
}

proctype courier(byte c, a, b)
{
	byte i;
end:	do
	:: atomic { credits[PAIR(c, a, b)] ->
		pick(credits[PAIR(c, a, b)], i);
		hear(c, b, a, i);
		i = 0; }
	:: atomic { asks[PAIR(c, a, b)] ->
		pick(asks[PAIR(c, a, b)], i);
		want(c, b, a, i);
		i = 0; }
	od
}

#else

#define IN_WINDOW(c, a, b, n)	true
#define hear(c, me, peer, newest) skip
#define answer(c, me, n)	skip
#define leave()			skip
#define arrive()		check_entry(c, to, n, p)

#endif

/* ---- a message ------------------------------------------------------------ */

#ifdef NO_EMPTY_ASKS
#define GOES_AT_ONCE	(M.kind == INLINE || M.kind == EMPTY)
#else
#define GOES_AT_ONCE	(M.kind == INLINE)
#endif

#define ASKS_FOR_ROOM	(M.kind == LARGE || M.kind == EAGER)
#define BY_REFERENCE	(M.kind == REFERENCE || M.kind == LENT)
#define IS_AWAITED	(IS_LIVE(c, to, n, p) && cursor[LANE(c, to, p)] == s && !sending[LANE(c, to, p)])

/* What is closed may have been stored over: only a copy is left to be sent. */
#ifdef NO_COPY
#define SEND_AGAIN	assert(sending[LANE(c, M.from, p)] & (1 << M.id))
#else
#define SEND_AGAIN	skip
#endif

/* What is forwarded goes when it has come. */
#ifdef NO_HELD
#define wait_for_it()	assert(!M.held)
#else
#define wait_for_it()	!M.held
#endif

inline close_send()
{
	sending[LANE(c, M.from, p)] = sending[LANE(c, M.from, p)] & ~(1 << M.id)
}

proctype message(byte c, n, p, to, s)
{
	byte carried;	/* base in the packet on the wire */
	bit near_end;	/* CREDIT_WANTED in it */
	bit unasked;	/* its send was closed when it went */

end:	M.opened;	/* programs need not use each slot */

	if
	:: IN_WINDOW(c, M.from, to, n) -> skip;
#if WINDOWED
	:: atomic { !IN_WINDOW(c, M.from, to, n) ->
#ifndef NO_ASK
		asks[PAIR(c, M.from, to)] = asks[PAIR(c, M.from, to)] | (1 << (n - WINDOW));
#endif
		}
		IN_WINDOW(c, M.from, to, n);
#endif
	fi;

	if
	:: GOES_AT_ONCE ->
		atomic { leave(); close_send(); }
		atomic { arrive(); M.filled = 1; }
		goto delivered;
	:: atomic { M.kind == EAGER && copies_free[M.from] > 0 ->
		copies_free[M.from]--;
		unasked = 1;
		leave();
		close_send(); }
		atomic {
			arrive();
			if
			:: IS_AWAITED -> M.filled = 1;
			:: !IS_AWAITED && blocks_free[to] > 0 ->
				blocks_free[to]--;
				M.room = BLOCKS;
				M.filled = 1;
#ifndef NO_REFUSAL
			:: !IS_AWAITED && !blocks_free[to] -> M.asked = 1;
#else
			:: !IS_AWAITED && !blocks_free[to] -> skip;
#endif
			fi;
		}
		if
		:: M.asked -> goto asked;
		:: !M.asked -> goto delivered;
		fi;
	:: atomic { M.kind == LENT && copies_free[M.from] > 0 ->
		copies_free[M.from]--;
		unasked = 1;
		M.lent = 1;
		leave();
		close_send(); }
#ifdef NO_KEEP
		M.lent = 0;
#endif
		atomic { arrive(); M.asked = 1; }		/* RTS */
	:: !GOES_AT_ONCE && !((M.kind == EAGER || M.kind == LENT) && copies_free[M.from] > 0) ->
		atomic { leave(); }
		atomic { arrive(); M.asked = 1; }		/* RTS */
	fi;
asked:
	if
	:: BY_REFERENCE ->
		atomic { M.taken ->				/* GRANT with TAKEN */
			if
			:: unasked -> M.lent = 0;
			:: !unasked -> close_send();
			fi; }
		goto delivered;
	:: atomic { M.kind == EMPTY && IS_LIVE(c, to, n, p) -> M.filled = 1; }
		close_send();					/* GRANT with TAKEN */
		goto delivered;
	:: atomic { ASKS_FOR_ROOM && M.room == STREAMED ->
		carried = base[RANK(c, to)]; }
	:: atomic { ASKS_FOR_ROOM && M.room != STREAMED && IS_LIVE(c, to, n, p) &&
		    blocks_free[to] > 0 ->
		blocks_free[to]--;
		M.room = BLOCKS;
		carried = base[RANK(c, to)]; }
	fi;
	atomic {						/* GRANT */
		hear(c, M.from, to, carried);
#ifdef FORWARD
		carried = 0;
	}
	atomic {
		wait_for_it();
#endif
		carried = base[RANK(c, M.from)];
		if
		:: unasked -> SEND_AGAIN;
		:: !unasked -> close_send();
		fi;
	}
	atomic {						/* DATA */
		hear(c, to, M.from, carried);
		assert(IS_LIVE(c, to, n, p));
		carried = 0;
		M.filled = 1;
	}
delivered:
	if
	:: unasked -> copies_free[M.from]++;
	:: !unasked -> skip;
	fi
}

#undef M

/* ---- an instance ---------------------------------------------------------- */

#define NEXT	cursor[LANE(c, r, p)]
#define M	slots[KEY(c, n, p, r, NEXT)]

/* Open send `bit_no` of this program: to slot `at` of rank `peer`. */
inline send(bit_no, peer, at, what)
{
	d_step {
		slots[KEY(c, n, p, peer, at)].kind = what;
		slots[KEY(c, n, p, peer, at)].from = r;
		slots[KEY(c, n, p, peer, at)].id = bit_no;
		slots[KEY(c, n, p, peer, at)].opened = 1;
		sending[LANE(c, r, p)] = sending[LANE(c, r, p)] | (1 << (bit_no));
	}
}

#ifdef FORWARD

/* The same, of what has yet to come for the next slot. */
inline forward(bit_no, peer, at)
{
	atomic {
		slots[KEY(c, n, p, peer, at)].held = 1;
		send(bit_no, peer, at, LARGE);
	}
}

/* That has come. */
inline go_on(peer, at)
{
	slots[KEY(c, n, p, peer, at)].held = 0
}

#endif

#define STORE_WAITS(over)	(sending[LANE(c, r, p)] & (over))

#ifdef NO_GRANT_WAITS
#define MAY_STREAM(over)	true
#else
#define MAY_STREAM(over)	(!STORE_WAITS(over))
#endif

/*
 * The turn of the next slot has come: combine it into what the sends `over` read from.
 * What asks for it and has no blocks is combined as it comes.
 */
inline await(over)
{
	do
	:: atomic { M.filled && (M.room == STREAMED || !STORE_WAITS(over)) ->
		assert(!STORE_WAITS(over));
		M.filled = 0;
		free_room(M, r);
		NEXT++;
		break; }
	:: atomic { BY_REFERENCE && M.asked && !M.taken && !STORE_WAITS(over) ->
		assert(M.lent || sending[LANE(c, M.from, p)] & (1 << M.id));
		M.taken = 1;
		NEXT++;
		break; }
#ifndef NO_STREAM
	:: atomic { (M.kind == LARGE || M.kind == EAGER) && M.asked && !M.filled && M.room != BLOCKS &&
		    M.room != STREAMED && MAY_STREAM(over) ->
		M.room = STREAMED; }
#endif
	od
}

proctype instance(byte c, r, p)
{
	byte n, peer;

	do
	:: n < NUMBERS ->
		IS_LIVE(c, r, n, p);
		program();
		atomic { !sending[LANE(c, r, p)] && oldest[RANK(c, r)] == p ->
			NEXT = 0;
			if
			:: p + 1 < PULSES_OF(c) -> oldest[RANK(c, r)]++;
			:: else ->
				oldest[RANK(c, r)] = 0;
				base[RANK(c, r)]++;
				answer(c, r, n);
			fi;
			n++; }
	:: n == NUMBERS -> break;
	od
}

init
{
	byte c, n, p, r, s;

	atomic {
		for (r : 0 .. RANKS - 1) {
			blocks_free[r] = ROOM;
			copies_free[r] = COPIES;
		}
		for (c : 0 .. CONTEXTS - 1) {
			for (r : 0 .. RANKS - 1) {
				for (p : 0 .. PULSES_OF(c) - 1) {
					if
					:: IS_MEMBER(c, r) -> run instance(c, r, p);
					:: else -> skip;
					fi
				}
#if WINDOWED
				for (s : 0 .. RANKS - 1) {
					if
					:: s != r -> run courier(c, r, s);
					:: else -> skip;
					fi
				}
#endif
				for (n : 0 .. NUMBERS - 1) {
					for (p : 0 .. PULSES_OF(c) - 1) {
						for (s : 0 .. SLOTS - 1) {
							if
							:: EXPECTS(r, s) -> run message(c, n, p, r, s);
							:: else -> skip;
							fi
						}
					}
				}
			}
		}
		c = 0; n = 0; p = 0; r = 0; s = 0;
	}
}
