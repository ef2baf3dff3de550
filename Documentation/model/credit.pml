/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The rules of Documentation/switch.md, section 5, for credits: hosts of one aggregation node send PULSES
 * segments through its group, which has SEGMENTS. A result says how many more there is room for; who
 * has no credit sends one packet when all before it have been answered. Packets are delivered in any
 * order, and the link of a host takes results whenever it likes. Indices go on over operations.
 *
 * A host that never gets a result is a deadlock; an aggregation node that has no segment for a
 * contribution is an assertion. The switches NO_... each remove one rule.
 */
#define RANKS	2
#define ALL	((1 << RANKS) - 1)

typedef host {
	byte oldest;		/* whose result has not come */
	byte credits;		/* for all below */
	byte sent;		/* bit by index, as are these: */
	byte up;		/* on the wire */
	byte down;		/* likewise, */
	byte told[PULSES];	/* with so many credits, as an index */
	byte has;
};

host hosts[RANKS];
byte came[PULSES];		/* bit by host, as is this: */
byte owed[PULSES];		/* its link has not taken the result */
byte over;			/* oldest index whose segment is not free */

#define H	hosts[r]
#define BIT(i)	(1 << (i))

#ifdef NO_LIMITED
#define MAY_SEND(i)	((i) < PULSES && !(H.sent & BIT(i)) && (i) < H.credits)
#else
#define MAY_SEND(i)	((i) < PULSES && !(H.sent & BIT(i)) && ((i) < H.credits || (i) == H.oldest))
#endif

inline contribute(i)
{
	H.sent = H.sent | BIT(i);
	H.up = H.up | BIT(i)
}

proctype member(byte r)
{
	do
	:: atomic { MAY_SEND(0) -> contribute(0); }
	:: atomic { MAY_SEND(1) -> contribute(1); }
	:: atomic { MAY_SEND(2) -> contribute(2); }
	:: atomic { MAY_SEND(3) -> contribute(3); }
	:: atomic { MAY_SEND(4) -> contribute(4); }
	:: atomic { MAY_SEND(5) -> contribute(5); }
	:: atomic { H.oldest < PULSES && H.has & BIT(H.oldest) -> H.oldest++; }
	:: H.oldest == PULSES -> break;
	od
}

#define PASS(i)	(i) < PULSES && H.down & BIT(i)

/* What is on the wire comes, some time. */
inline arrive(i)
{
	H.down = H.down & ~BIT(i);
	H.has = H.has | BIT(i);
	if
	:: H.told[i] > H.credits -> H.credits = H.told[i];
	:: else -> skip;
	fi;
	H.told[i] = 0
}

proctype wire(byte r)
{
end:	do
	:: atomic { PASS(0) -> arrive(0); }
	:: atomic { PASS(1) -> arrive(1); }
	:: atomic { PASS(2) -> arrive(2); }
	:: atomic { PASS(3) -> arrive(3); }
	:: atomic { PASS(4) -> arrive(4); }
	:: atomic { PASS(5) -> arrive(5); }
	od
}

/* A segment is there for it, and it is combined. */
inline take(i)
{
	H.up = H.up & ~BIT(i);
	assert(i - over < SEGMENTS);
	came[i] = came[i] | BIT(r);
	if
	:: came[i] == ALL -> owed[i] = ALL;
	:: else -> skip;
	fi
}

#define COMES(i)	(i) < PULSES && H.up & BIT(i)

proctype node(byte r)
{
end:	do
	:: atomic { COMES(0) -> take(0); }
	:: atomic { COMES(1) -> take(1); }
	:: atomic { COMES(2) -> take(2); }
	:: atomic { COMES(3) -> take(3); }
	:: atomic { COMES(4) -> take(4); }
	:: atomic { COMES(5) -> take(5); }
	od
}

#define OWES(i)	(i) < PULSES && owed[i] & BIT(r)

/* Credits: for the segments that neither it nor older ones have, and where there are older ones for one less. */
inline send(i)
{
	owed[i] = owed[i] & ~BIT(r);
	H.down = H.down | BIT(i);
#ifdef NO_KEEPING
	H.told[i] = over + SEGMENTS;
#else
	H.told[i] = over + SEGMENTS - (over == i -> 0 : 1);
#endif
	do
	:: over < PULSES && came[over] == ALL && !owed[over] -> over++;
	:: else -> break;
	od
}

proctype link(byte r)
{
end:	do
	:: atomic { OWES(0) -> send(0); }
	:: atomic { OWES(1) -> send(1); }
	:: atomic { OWES(2) -> send(2); }
	:: atomic { OWES(3) -> send(3); }
	:: atomic { OWES(4) -> send(4); }
	:: atomic { OWES(5) -> send(5); }
	od
}

init
{
	byte r;

	atomic {
		for (r : 0 .. RANKS - 1) {
			run member(r);
			run wire(r);
			run node(r);
			run link(r);
		}
		r = 0;
	}
}
