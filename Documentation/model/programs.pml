/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One small collective each: what rank r does in number n, pulse p. KIND is the
 * kind of its messages. EXPECTS(r, s): whether rank r has a slot s, to save
 * processes. await(over) combines the next slot into what the sends `over` (a bit
 * each) read from.
 *
 * What comes in a step is stored beside what is sent in it, so over nothing, and the
 * next step sends from there and stores over what the one before had sent. NO_SCRATCH
 * has one place only.
 */
#ifdef NO_SCRATCH
#define SAME_STEP(over)	(over)
#else
#define SAME_STEP(over)	0
#endif

/* A step stores over what it forwards, as what has gone from there is final. */
#ifdef NO_OVER
#define OWN(sends)	(sends)
#else
#define OWN(sends)	0
#endif

#ifdef EXCHANGE
/* Two ranks send their whole vector and reduce the other's into it. */
#define RANKS 2
#define SLOTS 1
#define EXPECTS(r, s) true
inline program()
{
	send(0, 1 - r, 0, KIND);
	await(SAME_STEP(1 << 0))
}
#endif

#ifdef DOUBLING
/* Recursive doubling on 4 ranks. */
#define RANKS 4
#define SLOTS 2
#define EXPECTS(r, s) true
inline program()
{
	send(0, r ^ 1, 0, KIND);
	await(SAME_STEP(1 << 0));
	send(1, r ^ 2, 1, KIND);
	await(1 << 0 | SAME_STEP(1 << 1))
}
#endif

#ifdef REDUCE
/* Two children send to the root; NO_ONE_BY_ONE: it waits for both, then combines. */
#define RANKS 3
#define SLOTS 2
#define EXPECTS(r, s) (r == 0)
inline program()
{
	if
	:: r == 0 ->
#ifdef NO_ONE_BY_ONE
		slots[KEY(c, n, p, 0, 0)].filled && slots[KEY(c, n, p, 0, 1)].filled;
#endif
		await(0);
		await(0);
	:: r != 0 ->
		send(0, 0, r - 1, KIND);
	fi
}
#endif

#ifdef BROADCAST
/* Binomial on 4 ranks, root 0, which hears nothing and runs ahead. */
#define RANKS 4
#define SLOTS 1
#define EXPECTS(r, s) (r != 0)
inline program()
{
	if
	:: r == 0 ->
		send(0, 1, 0, KIND);
		send(1, 2, 0, KIND);
	:: r == 1 ->
		await(0);
		send(0, 3, 0, KIND);
	:: r > 1 ->
		await(0);
	fi
}
#endif

#ifdef STREAM
/* Root 0 of two ranks, for a longer window. */
#define RANKS 2
#define SLOTS 1
#define EXPECTS(r, s) (r == 1)
inline program()
{
	if
	:: r == 0 -> send(0, 1, 0, KIND);
	:: r == 1 -> await(0);
	fi
}
#endif

#ifdef ROOTS
/* Rank 1 is root for more than a window; then rank 0, which never heard of rank 2. */
#define RANKS 3
#define SLOTS 1
#define EXPECTS(r, s) true
#define ROOT(n) ((n) <= WINDOW -> 1 : 0)
inline program()
{
	if
	:: r == ROOT(n) ->
		send(0, 1 - r, 0, KIND);
		send(1, 2, 0, KIND);
	:: r != ROOT(n) ->
		await(0);
	fi
}
#endif

#ifdef TRIANGLE
/*
 * Each pair of three ranks exchanges one chunk in the same step: rank r its
 * chunk 0 with r + 1, its chunk 1 with r + 2.
 */
#define RANKS 3
#define SLOTS 2
#define EXPECTS(r, s) true
inline program()
{
	send(0, (r + 1) % 3, 1, KIND);
	send(1, (r + 2) % 3, 0, KIND);
	await(SAME_STEP(1 << 0));
	await(SAME_STEP(1 << 1))
}
#endif

#ifdef RING
/* Contexts of two of three ranks each, which exchange whole vectors: 0 and 1, 1 and 2. */
#define RANKS 3
#define SLOTS 1
#define IS_MEMBER(c, r) ((r) == (c) || (r) == ((c) + 1) % 3)
#define PEER(c, r) ((2 * (c) + 1 - (r)) % 3)
#define EXPECTS(r, s) IS_MEMBER(c, r)
inline program()
{
	send(0, PEER(c, r), 0, KIND);
	await(SAME_STEP(1 << 0))
}
#endif

#ifdef ENDS_EARLY
/* Rank 0's part has no bytes left, rank 1's has: rank 0 must not run away. */
#define RANKS 3
#define SLOTS 2
#define EXPECTS(r, s) (r == 2)
inline program()
{
	if
	:: r == 0 -> send(0, 2, 1, EMPTY);
	:: r == 1 -> send(0, 2, 0, KIND);
	:: r == 2 ->
		await(0);
		await(0);
	fi
}
#endif

#ifdef CHAIN
/* Each rank forwards what the one before it sends; in the second context the other way round. */
#define FORWARD
#define RANKS 3
#define SLOTS 1
#define PLACE(c, r) ((r) + (c) * (RANKS - 1 - 2 * (r)))
#define NEXT_OF(c, r) ((r) + 1 - 2 * (c))
#define EXPECTS(r, s) (PLACE(c, r) != 0)
inline program()
{
	if
	:: PLACE(c, r) == 0 -> send(0, NEXT_OF(c, r), 0, LARGE);
	:: PLACE(c, r) == 1 ->
		forward(0, NEXT_OF(c, r), 0);
		await(OWN(1 << 0));
		go_on(NEXT_OF(c, r), 0);
	:: PLACE(c, r) == 2 -> await(0);
	fi
}
#endif

#ifdef FAN
/* Rank 1 forwards to two. */
#define FORWARD
#define RANKS 4
#define SLOTS 1
#define EXPECTS(r, s) (r != 0)
inline program()
{
	if
	:: r == 0 -> send(0, 1, 0, LARGE);
	:: r == 1 ->
		forward(0, 2, 0);
		forward(1, 3, 0);
		await(OWN(1 << 0 | 1 << 1));
		go_on(2, 0);
		go_on(3, 0);
	:: r > 1 -> await(0);
	fi
}
#endif

#ifdef RELAY
/* Rank 2 adds up what ranks 0 and 1 send, and forwards the sum as the second comes. NO_TURN: as the first does. */
#define FORWARD
#define RANKS 4
#define SLOTS 2
#define EXPECTS(r, s) (r == 2 || (r == 3 && s == 0))
inline program()
{
	if
	:: r < 2 -> send(0, 2, r, LARGE);
	:: r == 2 ->
#ifdef NO_TURN
		forward(0, 3, 0);
		await(OWN(1 << 0));
		go_on(3, 0);
		await(OWN(1 << 0));
		assert(sending[LANE(c, r, p)] & 1 << 0);
#else
		await(0);
		forward(0, 3, 0);
		await(OWN(1 << 0));
		go_on(3, 0);
#endif
	:: r == 3 -> await(0);
	fi
}
#endif
