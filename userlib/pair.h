/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the libraries of two ranks tell each other, and what members agree upon with it.
 * A job has a pair for each other rank; all messages between two ranks, of whichever
 * communicator, are counted there.
 */
#ifndef MUSTER_PAIR_H
#define MUSTER_PAIR_H

#include "internal.h"

/* ---- pair.c: credits between ranks, and what their libraries tell each other ------------- */

enum muster_message_stage {	/* of a point-to-point message */
	MUSTER_STAGE_FRAGMENT = 0,
	MUSTER_STAGE_CONTROL = 1,
};

enum muster_control_kind {
	MUSTER_CONTROL_CREDIT = 1,
	MUSTER_CONTROL_RECALL,		/* give back what was lent */
	MUSTER_CONTROL_RETURN,		/* value: the limit that is left; sent: the recall's epoch */
	MUSTER_CONTROL_STREAM,		/* value: fragments that it takes in all */
	MUSTER_CONTROL_PROBE,		/* where are you? value: the operation that I am in */
	MUSTER_CONTROL_REPLY,		/* value: the operation that I am in */
	MUSTER_CONTROL_GONE,		/* I have closed that communicator */
	MUSTER_CONTROL_LEAVE,		/* value: the first operation that I will not be in */
	MUSTER_CONTROL_SETTLE,		/* it has failed here; no more fragments come */
	MUSTER_CONTROL_AGREE_UP,
	MUSTER_CONTROL_AGREE_DOWN,
	MUSTER_CONTROL_MOVE,		/* to other groups: move; */
	MUSTER_CONTROL_MOVE_FROM,	/* value: with none of these operations have I begun; */
	MUSTER_CONTROL_MOVE_AT,		/* value: the first that is there */
};

/* What members agree upon (agree.c). */
struct muster_agreement {
	uint64_t key;		/* which agreement it is */
	int32_t status;		/* the first error */
	uint32_t culprit;	/* whose it is: rank of the job */
	uint64_t most[MUSTER_AGREE_WORDS];	/* the largest that any has said */
	uint64_t common[MUSTER_AGREE_WORDS];	/* bits that all have said */
};

/* By type of tree; where a key is 0 there is none. */
struct muster_moved {
	uint64_t keys[2];
	uint32_t groups[2];
	uint32_t instead_of[2];
};

/* The payload of a message among libraries. */
struct muster_control {
	uint8_t kind;
	uint8_t epoch;		/* of limit */
	uint16_t reserved;
	uint32_t limit;		/* messages that its receiver may send in all */
	uint32_t context;	/* of which communicator it speaks */
	uint32_t life;
	union {
		struct {
			uint32_t value;
			uint32_t sent;	/* fragments of that communicator in all */
			struct muster_signature signature;
		} about;
		struct muster_agreement agreement;
		struct muster_moved moved;
	};
};

/* A communicator that waits for a pair's credit, in a ring; its first is nobody's, and waits for none. */
struct muster_waiter {
	struct muster_waiter *next, *prev;	/* NULL: it does not wait */
	struct muster_comm *comm;
};

/* Of each rank of the job; what it says that another has sent is never more than that. */
struct muster_pair {
	uint32_t sent;		/* messages that it was sent */
	uint32_t limit;		/* it takes so many in all */
	uint32_t read;		/* messages of its own that were read here, or never will be */
	uint32_t told;		/* of them it may send so many; told - read <= window */
	uint32_t window;	/* slots of the own ring that are set aside for it */
	uint32_t heard;		/* the job's clock when it was read last */
	uint8_t epoch;		/* of told: raised by each recall */
	uint8_t epoch_there;	/* of limit */
	bool due;		/* it is to be told more; what found no room */
	bool recalling;		/* it was asked to give back, and has not answered */
	bool return_due;	/* we were */
	bool has[2];
	struct muster_agreement early[2];	/* what it said before it was asked: up, down */
	struct muster_waiter words;	/* communicators that have something to say to it, */
	struct muster_waiter fragments;	/* and those that send to it next, in the order in which they came */
};

/* What a rank has said before it was asked, where its pair has no place for it. */
struct muster_early {
	struct muster_early *next;
	uint32_t rank;
	bool down;
	struct muster_agreement agreement;
};

/** muster_pairs_open() - 0; -ENOSPC, on all ranks: the receive rings are too small. */
int muster_pairs_open(struct muster *job);
void muster_pairs_close(struct muster *job);
/** muster_pair_has_credit() - whether a fragment may be sent to that rank now. */
bool muster_pair_has_credit(const struct muster *job, uint32_t rank);
/** muster_pair_sent() - so many were sent; or never left, if negative. */
void muster_pair_sent(struct muster *job, uint32_t rank, int32_t nr);
/** muster_pair_read() - so many messages of that rank are out of the ring, or will never be in it. */
void muster_pair_read(struct muster *job, uint32_t rank, uint32_t nr);
/** muster_pairs_flush() - say what found no room before, and let go on who has waited for credits. */
void muster_pairs_flush(struct muster *job);
/** muster_pair_await() - stand in a line of that rank's pair, if not in one already: for want of a credit, or of room. */
void muster_pair_await(struct muster *job, uint32_t rank, bool words, struct muster_waiter *waiter);
/** muster_pair_await_no_more() - whether it waits or not. */
void muster_pair_await_no_more(struct muster *job, struct muster_waiter *waiter);
/** muster_pair_agreement() - whether that rank has said its part; up to us, or down. */
bool muster_pair_agreement(struct muster *job, uint32_t rank, bool down, uint64_t key,
			   struct muster_agreement *said);
/** muster_control_send() - 0; -EAGAIN: no credit or no room now; -errno. */
int muster_control_send(struct muster *job, uint32_t rank, struct muster_control *control);
void muster_control_receive(struct muster *job, uint32_t rank, const void *payload);
/** muster_control_left() - the device says that one has left. */
void muster_control_left(struct muster *job);

/* ---- agree.c ----------------------------------------------------------------------------- */

/* Who agrees: some members of a communicator, each at the same place with all. */
struct muster_group {
	struct muster_comm *parent;
	uint32_t nr;
	uint32_t self;
	const uint32_t *members;	/* ranks in the parent; NULL: all */
	uint64_t key;			/* of the next agreement; the same with all */
};

/** muster_group_of_all() - all members, in their order; the next agreement that they all have. */
struct muster_group muster_group_of_all(struct muster_comm *parent);

/**
 * muster_group_error() - 0: they can agree; the error with which their parent has ended. One that a death has
 * ended lets those agree that live, where they are named and the device knows of every death.
 */
int muster_group_error(const struct muster_group *group);

/**
 * muster_agree() - tell words, and get what all have said; operations go on meanwhile.
 * Return: 0, whatever the words' status; or muster_group_error().
 */
int muster_agree(struct muster_group *group, struct muster_agreement *words);

#endif /* MUSTER_PAIR_H */
