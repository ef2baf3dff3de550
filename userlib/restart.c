// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A blocking operation is begun anew, once, when a member or a part of the network is lost while it runs.
 * Who is left makes a communicator, the heir, with trees of its own where there are some, and says there
 * with which operation it is: these are counted by all members alike. What all are with is begun anew on the
 * heir, from inputs that are as they were. What some have ended cannot be: they have gone on, perhaps with
 * another input in its place. By agreement nobody ends an operation before all have its result, so then it has
 * ended everywhere; without, it is an error at those that have not. More than half must be left, so two
 * halves of a network that is cut never both go on.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "arith.h"
#include "calls.h"
#include "pair.h"
#include "restart.h"
#include "turn.h"

enum {
	AGAIN_MAX = 8,		/* heirs that are tried, beside one for each member that may be lost meanwhile */
};

enum verdict {
	BEGIN_ANEW,
	HAS_ENDED,	/* everywhere */
	ENDED_ELSEWHERE,
	LOST_AGAIN,
};

/* Where a member is: the operation, whether it is begun anew, whether its result is here. */
enum { AT_ENDED = 1, AT_ANEW = 2, AT_SHIFT = 2 };

/* ---- the input of what is in place ------------------------------------------------------------- */

static uint64_t bytes_in_place(const struct muster_attempt *attempt)
{
	size_t size = attempt->type <= UINT8_MAX ? muster_dtype_size((uint8_t)attempt->type) : 0;

	if (attempt->coll == MUSTER_COLL_BROADCAST || !attempt->in || attempt->in != attempt->out || !size ||
	    attempt->count > (UINTPTR_MAX - (uintptr_t)attempt->in) / size)
		return 0;	/* or it is refused */
	return attempt->count * size;
}

static int input_keep(struct muster_comm *comm, const struct muster_attempt *attempt)
{
	struct muster_restarts *restarts = comm->restarts;
	uint64_t bytes = bytes_in_place(attempt);

	if (bytes > restarts->kept_bytes) {
		free(restarts->kept);
		restarts->kept = malloc(bytes);
		restarts->kept_bytes = restarts->kept ? bytes : 0;
		if (!restarts->kept)
			return muster_comm_give_up(muster_restart_now(comm),
						   muster_fail(comm->job, -ENOMEM, "no memory to keep what an operation in place begins with"));
	}
	muster_copy(restarts->kept, attempt->in, bytes);
	return 0;
}

static void input_restore(struct muster_comm *comm, const struct muster_attempt *attempt)
{
	muster_copy(attempt->out, comm->restarts->kept, bytes_in_place(attempt));
}

/* ---- once ---------------------------------------------------------------------------------------- */

/* All have the result. */
static int all_agree(struct muster_comm *comm)
{
	const struct muster_call call = { .coll = MUSTER_COLL_BARRIER, .in_place = true, .own = true };
	struct muster_request *request;
	int err = muster_comm_check(comm, &request);

	if (!err)
		err = muster_request_start(comm, &call, NULL, NULL, &request);
	return err ? err : muster_wait(request);
}

/* Roots are numbered as in the communicator that was called. */
static int root_find(struct muster_comm *comm, struct muster_attempt *attempt)
{
	const struct muster_comm *heir = comm->restarts->heir;
	uint32_t root = attempt->root;

	if (!heir || !muster_coll_rooted(attempt->coll) || root >= comm->size)
		return 0;
	attempt->root = muster_comm_member(heir, comm->ranks[root]);
	return attempt->root < heir->size ? 0 : muster_fail(comm->job, -ECONNRESET, "rank %u, the root, has died or left the job", root);
}

static int run_once(struct muster_comm *comm, const struct muster_attempt *attempt, bool *ended)
{
	struct muster_comm *now = muster_restart_now(comm);
	int err = muster_attempt_run(now, attempt);

	*ended = !err;
	if (!err && comm->restarts->how == MUSTER_RESTART_AGREED)
		err = all_agree(now);
	comm->restarts->place += !err;
	return err;
}

/* ---- after a loss ---------------------------------------------------------------------------------- */

static bool is_lost(struct muster_comm *comm, uint32_t member)
{
	struct muster_comm *heir = comm->restarts->heir;

	return muster_comm_has_lost(comm, member) ||
	       (heir && muster_comm_has_lost(heir, muster_comm_member(heir, comm->ranks[member])));
}

/* Collective over those that are left. */
static int heir_make(struct muster_comm *comm)
{
	struct muster_restarts *restarts = comm->restarts;
	uint32_t *left = calloc(comm->size, sizeof(*left)), nr = 0;
	struct muster_comm *heir = NULL;
	int err;

	if (!left)
		return muster_fail(comm->job, -ENOMEM, "no memory for %u members", comm->size);
	for (uint32_t i = 0; i < comm->size; i++)
		if (!is_lost(comm, i))
			left[nr++] = i;
	if (is_lost(comm, comm->rank) || nr <= comm->size / 2)
		err = muster_fail(comm->job, -ENOTCONN, "of %u ranks %u can be reached from here; more than half are needed to go on",
				  comm->size, nr);
	else
		err = muster_comm_create_group(comm, nr, left, MUSTER_RESTART_TAG, &heir);
	free(left);
	if (err)
		return err;
	muster_restart_forget(heir);
	muster_comm_free(restarts->heir);
	restarts->heir = heir;
	return 0;
}

static enum verdict judge(struct muster_restarts *restarts, bool ended, uint64_t least, uint64_t most, bool *anew)
{
	if (restarts->place < most >> AT_SHIFT) {
		restarts->from = most >> AT_SHIFT;
		return ended ? HAS_ENDED : ENDED_ELSEWHERE;
	}
	if (least >> AT_SHIFT < restarts->place)	/* which nobody who is behind has begun */
		return BEGIN_ANEW;
	if (most & AT_ANEW)
		return LOST_AGAIN;
	*anew = true;
	return BEGIN_ANEW;
}

/* Whoever is lost meanwhile is so for all that have not an heir yet, and breaks that of those that have. */
static int recover(struct muster_comm *comm, bool ended, bool *anew, enum verdict *verdict)
{
	struct muster_restarts *restarts = comm->restarts;
	uint64_t at = restarts->place << AT_SHIFT | (*anew ? AT_ANEW : 0) | (ended ? AT_ENDED : 0);
	struct muster_agreement words;
	int err = -ECONNRESET;

	for (uint32_t i = 0; i < comm->size + AGAIN_MAX && err == -ECONNRESET; i++) {
		struct muster_group group;

		words = (struct muster_agreement){ .most = { at, ~at } };
		err = heir_make(comm);
		if (err)
			continue;
		group = muster_group_of_all(restarts->heir);
		err = muster_agree(&group, &words);
	}
	if (!err)
		*verdict = judge(restarts, ended, ~words.most[1], words.most[0], anew);
	return err;
}

static int ended_elsewhere(struct muster_comm *comm)
{
	comm->restarts->place++;
	return muster_fail(comm->job, -ECONNRESET, "a member was lost, and others had ended this operation already: it cannot be begun anew (MUSTER_RESTART_AGREED can)");
}

/* Return: 1: once more; 0: it has ended everywhere; -errno. */
static int after_loss(struct muster_comm *comm, bool ended, bool *anew)
{
	struct muster_op_info info = muster_restart_now(comm)->last;
	enum verdict verdict;
	int err = recover(comm, ended, anew, &verdict);

	if (err)
		return err;
	switch (verdict) {
	case BEGIN_ANEW:
		return 1;
	case HAS_ENDED:
		info.why = "it had ended everywhere when a member was lost";
		comm->restarts->heir->last = info;
		comm->restarts->place++;
		return 0;
	case ENDED_ELSEWHERE:
		return ended_elsewhere(comm);
	default:
		comm->restarts->place++;
		return muster_fail(comm->job, -ECONNRESET, "a member was lost, and another while the operation was begun anew");
	}
}

/* Return: 0 or -errno: that is its end; 1: once more. */
static int run_until_loss(struct muster_comm *comm, const struct muster_attempt *called, bool *anew)
{
	struct muster_attempt attempt = *called;
	bool ended;
	int err = root_find(comm, &attempt);

	if (err) {
		comm->restarts->place++;
		return err;
	}
	err = run_once(comm, &attempt, &ended);
	if (!err || muster_restart_now(comm)->failed != -ECONNRESET)
		return err;
	return after_loss(comm, ended, anew);
}

int muster_restart_run(struct muster_comm *comm, const struct muster_attempt *attempt)
{
	bool anew = false;
	int ret;

	if (comm->restarts->place < comm->restarts->from)
		return ended_elsewhere(comm);
	ret = input_keep(comm, attempt);
	while (!ret && (ret = run_until_loss(comm, attempt, &anew)) == 1) {
		input_restore(comm, attempt);
		ret = 0;
	}
	return ret;
}

/* ---- who wants it ------------------------------------------------------------------------------------ */

int muster_restart_set(struct muster_comm *comm, enum muster_restart how)
{
	if (!comm->restarts && how != MUSTER_RESTART_OFF) {
		comm->restarts = calloc(1, sizeof(*comm->restarts));
		if (!comm->restarts)
			return muster_fail(comm->job, -ENOMEM, "no memory for a communicator's restarts");
	}
	if (comm->restarts)
		comm->restarts->how = how;
	return 0;
}

void muster_restart_forget(struct muster_comm *comm)
{
	if (comm->restarts)
		free(comm->restarts->kept);
	free(comm->restarts);
	comm->restarts = NULL;
}

int muster_comm_restart(struct muster_comm *comm, enum muster_restart how)
{
	MUSTER_TURN_OF(comm);
	if (!comm)
		return -EINVAL;
	if (how > MUSTER_RESTART_AGREED)
		return muster_fail(comm->job, -EINVAL, "muster_comm_restart: %d; allowed are off (0), try (1) and agreed (2)",
				   (int)how);
	if (comm->restarts && comm->restarts->heir)
		return muster_fail(comm->job, -EINVAL, "muster_comm_restart: the communicator has lost a member; it stays as it is");
	return muster_restart_set(comm, how);
}

struct muster_comm *muster_comm_heir(struct muster_comm *comm)
{
	MUSTER_TURN_OF(comm);
	return comm ? muster_restart_now(comm) : NULL;
}
