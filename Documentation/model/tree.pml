/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The rules of Documentation/switch.md, section 4: hosts of one aggregation node run
 * NUMBERS operations of PULSES segments, at most 3, through it and no other partner. Packets are
 * delivered in any order, the first copy of a result may be lost, and the link of a host
 * takes the second one whenever it likes. Data is not modelled.
 *
 * A host that never gets a result is a deadlock; an aggregation node that has no segment
 * for a contribution, and a result that reaches a host which has gone on, are assertions. The
 * switches NO_... each remove one rule.
 */
#define RANKS	2

#ifndef SEGMENTS
#define SEGMENTS (2 * LIVE)
#endif

#define KEY(n, p)	((n) * PULSES + (p))
#define ALL		((1 << RANKS) - 1)
#define SECOND		(NUMBERS * PULSES)	/* from there on: the second copies */

typedef host {
	byte n;			/* running number */
	byte oldest;		/* pulse of it that has not ended */
	int sent;		/* bit by key: has contributed */
	int has;		/* bit by key: has the result */
	int up;			/* bit by key: the contribution is on the wire */
	int down;		/* bit by key, first and second copy: is on the wire */
};

mtype = { FREE, COLLECTING, DOWN };

typedef segment {
	mtype phase = FREE;
	byte n, p;
	byte came;		/* bit by host */
	byte owed;		/* bit by host: its link has not taken the second copy */
};

host hosts[RANKS];
segment segments[SEGMENTS];

#define H	hosts[r]
#define S	segments[s]

#define MAY_SEND(p)	(H.n < NUMBERS && (p) < PULSES && H.oldest <= (p) && (p) < H.oldest + LIVE && \
			 !(H.sent & (1 << KEY(H.n, p))))

inline contribute(pulse)
{
	H.sent = H.sent | (1 << KEY(H.n, pulse));
	H.up = H.up | (1 << KEY(H.n, pulse))
}

/* Any pulse of the window may be first. */
proctype member(byte r)
{
	do
	:: atomic { MAY_SEND(0) -> contribute(0); }
	:: atomic { MAY_SEND(1) -> contribute(1); }
	:: atomic { MAY_SEND(2) -> contribute(2); }
	:: atomic { H.n < NUMBERS && (H.has & (1 << KEY(H.n, H.oldest))) ->
		H.oldest++;
		if
		:: H.oldest == PULSES -> H.oldest = 0; H.n++;
		:: else -> skip;
		fi; }
	:: H.n == NUMBERS -> break;
	od
}

/* What is on the wire comes, some time. */
proctype wire(byte r)
{
	byte i;

end:	do
	:: atomic { H.down ->
		i = 0;
		do
		:: H.down & (1 << i) -> break;
		:: H.down >> (i + 1) -> i++;
		od;
		H.down = H.down & ~(1 << i);
		i = i % SECOND;
		assert(H.sent & (1 << i));
#ifdef NO_ABSORBING
		assert(!(H.has & (1 << i)));
#endif
		H.has = H.has | (1 << i);
		i = 0; }
	od
}

inline free(at)
{
	segments[at].phase = FREE;
	segments[at].n = 0;
	segments[at].p = 0;
	segments[at].came = 0
}

/* Who goes on has the older results, whichever copy it was. */
inline spare(who, number, pulse)
{
	s = 0;
	do
	:: s < SEGMENTS ->
		if
#ifdef NO_COMPARING
		:: S.phase == DOWN && (S.owed & (1 << who)) ->
#else
		:: S.phase == DOWN && (S.owed & (1 << who)) && (S.n < number || (S.n == number && S.p + LIVE <= pulse)) ->
#endif
			S.owed = S.owed & ~(1 << who);
			if
			:: !S.owed -> free(s);
			:: else -> skip;
			fi;
		:: else -> skip;
		fi;
		s++;
	:: s == SEGMENTS -> break;
	od;
	s = 0
}

inline find(number, pulse)
{
	s = 0;
	do
	:: s < SEGMENTS && S.phase != FREE && S.n == number && S.p == pulse -> break;
	:: s < SEGMENTS && !(S.phase != FREE && S.n == number && S.p == pulse) -> s++;
	:: s == SEGMENTS -> break;
	od;
	if
	:: s == SEGMENTS ->
		s = 0;
		do
		:: s < SEGMENTS && S.phase == FREE -> break;
		:: s < SEGMENTS && S.phase != FREE -> s++;
		:: s == SEGMENTS -> break;
		od;
		assert(s < SEGMENTS);
		S.phase = COLLECTING;
		S.n = number;
		S.p = pulse;
	:: else -> skip;
	fi
}

inline distribute()
{
	S.phase = DOWN;
	other = 0;
	do
	:: other < RANKS -> hosts[other].down = hosts[other].down | (1 << KEY(S.n, S.p)); other++;
	:: other < RANKS -> other++;				/* lost */
	:: other == RANKS -> break;
	od;
	other = 0;
#ifdef NO_SECOND
	free(s);
#else
	S.owed = ALL;
#endif
}

/* The contributions of one host come in any order. */
proctype node(byte r)
{
	byte s, i, other;

end:	do
	:: atomic { H.up ->
		i = 0;
		do
		:: H.up & (1 << i) -> break;
		:: H.up >> (i + 1) -> i++;
		od;
		H.up = H.up & ~(1 << i);
#ifndef NO_SPARING
		spare(r, i / PULSES, i % PULSES);
#endif
		find(i / PULSES, i % PULSES);
		assert(S.phase == COLLECTING);
		S.came = S.came | (1 << r);
		if
		:: S.came == ALL -> distribute();
		:: else -> skip;
		fi;
		s = 0;
		i = 0; }
	od
}

#define OWES(at)	(segments[at].phase == DOWN && (segments[at].owed & (1 << r)))

inline second(at)
{
	segments[at].owed = segments[at].owed & ~(1 << r);
	H.down = H.down | (1 << (SECOND + KEY(segments[at].n, segments[at].p)));
	if
	:: !segments[at].owed -> free(at);
	:: else -> skip;
	fi
}

/* Takes the second copies, any of them, or none for as long as it likes. */
proctype link(byte r)
{
end:	do
	:: atomic { OWES(0) -> second(0); }
	:: atomic { OWES(1) -> second(1); }
#if SEGMENTS == 4
	:: atomic { OWES(2) -> second(2); }
	:: atomic { OWES(3) -> second(3); }
#endif
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
