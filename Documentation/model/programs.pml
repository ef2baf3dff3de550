/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One small collective each: what rank r does in number n, pulse p. KIND is the
 * kind of its messages. EXPECTS(r, s): whether rank r has a slot s, to save
 * processes; AWAITED(r, n): how many it awaits. await(over) combines the next
 * slot into what the sends `over` (a bit each) read from.
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

#ifdef EXCHANGE
/* Two ranks send their whole vector and reduce the other's into it. */
#define RANKS 2
#define SLOTS 1
#define EXPECTS(r, s) true
#define AWAITED(r, n) 1
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
#define AWAITED(r, n) 2
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
#define AWAITED(r, n) ((r) == 0 -> 2 : 0)
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
#define AWAITED(r, n) ((r) == 0 -> 0 : 1)
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
#define AWAITED(r, n) (r)
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
#define AWAITED(r, n) ((r) == ROOT(n) -> 0 : 1)
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
#define AWAITED(r, n) 2
inline program()
{
	send(0, (r + 1) % 3, 1, KIND);
	send(1, (r + 2) % 3, 0, KIND);
	await(SAME_STEP(1 << 0));
	await(SAME_STEP(1 << 1))
}
#endif

#ifdef RING
/* Each of three ranks passes its whole vector on. */
#define RANKS 3
#define SLOTS 1
#define EXPECTS(r, s) true
#define AWAITED(r, n) 1
inline program()
{
	send(0, (r + 1) % 3, 0, KIND);
	await(SAME_STEP(1 << 0))
}
#endif

#ifdef ENDS_EARLY
/* Rank 0's part has no bytes left, rank 1's has: rank 0 must not run away. */
#define RANKS 3
#define SLOTS 2
#define EXPECTS(r, s) (r == 2)
#define AWAITED(r, n) ((r) == 2 -> 2 : 0)
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
