// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What some members of a communicator agree upon, by messages among them alone: up a
 * binomial tree, where each adds its own, and down again. It takes no turn in the
 * communicator's order, and its operations go on meanwhile. Which agreement a message
 * belongs to is told by its key: members that call the same with the same arguments
 * have the same one. Some members agree even when another has died, and the communicator
 * has ended with it: what they say goes through the world, which carries it to the end.
 */
#include <errno.h>
#include <string.h>

#include "look.h"
#include "pair.h"
#include "restart.h"
#include "turn.h"

static uint32_t member_of(const struct muster_group *group, uint32_t index)
{
	return group->members ? group->members[index] : index;
}

static uint32_t rank_of(const struct muster_group *group, uint32_t index)
{
	return group->parent->ranks[member_of(group, index)];
}

/* The first that the device has lost; nr: it has none. */
static uint32_t lost_one(const struct muster_group *group)
{
	const struct muster *job = group->parent->job;
	uint32_t i = 0;

	while (i < group->nr && !job->dev->ops->lost(job->dev, &job->addresses[rank_of(group, i)]))
		i++;
	return i;
}

/* Only where the device knows of each that dies is it certain that none waits for one that has. */
int muster_group_error(const struct muster_group *group)
{
	struct muster_comm *parent = group->parent;
	uint32_t lost;

	if (!parent->failed)
		return 0;
	if (!group->members || parent->failed != -ECONNRESET || !parent->job->dev->ops->lost)
		return muster_fail(parent->job, parent->failed, "%s", muster_comm_why(parent));
	lost = lost_one(group);
	if (lost == group->nr)
		return 0;
	return muster_fail(parent->job, -ECONNRESET, "rank %u has died or left the job",
			   rank_of(group, lost));
}

/* One step of waiting for another. Return: 0; or the error with which the group cannot go on. */
static int wait_a_little(struct muster_group *group, uint32_t rank, uint32_t *idle)
{
	struct muster *job = group->parent->job;

	muster_turn_pass(job);
	if (job->has_lost)
		muster_restarts_join(job);
	if (muster_progress(job)) {
		*idle = 0;
	} else if (++*idle > job->spin_polls) {
		muster_look_wait_for(group->parent, rank);
		muster_sleep(job, MUSTER_SLEEP_US);
	}
	return muster_group_error(group);
}

static int say(struct muster_group *group, uint32_t index, bool down,
	       const struct muster_agreement *mine)
{
	struct muster_control control = {
		.kind = MUSTER_CONTROL_AGREE_UP + down,
		.agreement = *mine,
	};
	uint32_t idle = 0;
	int err;

	while ((err = muster_control_send(group->parent->job, rank_of(group, index), &control)) ==
	       -EAGAIN) {
		err = wait_a_little(group, rank_of(group, index), &idle);
		if (err)
			return err;
	}
	if (err)
		return muster_fail(group->parent->job, err, "the device takes no message: %s",
				   strerror(-err));
	return 0;
}

static int hear(struct muster_group *group, uint32_t index, bool down, uint64_t key,
		struct muster_agreement *said)
{
	uint32_t idle = 0;
	int err = 0;

	while (!err && !muster_pair_agreement(group->parent->job, rank_of(group, index), down, key,
					      said))
		err = wait_a_little(group, rank_of(group, index), &idle);
	return err;
}

static void combine(struct muster_agreement *all, const struct muster_agreement *said)
{
	if (!all->status && said->status) {
		all->status = said->status;
		all->culprit = said->culprit;
	}
	for (int i = 0; i < MUSTER_AGREE_WORDS; i++) {
		all->most[i] = said->most[i] > all->most[i] ? said->most[i] : all->most[i];
		all->common[i] &= said->common[i];
	}
}

int muster_agree(struct muster_group *group, struct muster_agreement *words)
{
	uint32_t bit = 1, idle = 0;
	int err = 0;

	words->key = group->key;
	words->culprit = group->parent->job->oob.rank;
	for (; bit < group->nr && !(group->self & bit) && !err; bit *= 2) {
		struct muster_agreement said;

		if (group->self + bit >= group->nr)
			continue;
		err = hear(group, group->self + bit, false, group->key, &said);
		if (!err)
			combine(words, &said);
	}
	if (group->self && !err)
		err = say(group, group->self - bit, false, words);
	if (group->self && !err)
		err = hear(group, group->self - bit, true, group->key, words);
	for (bit /= 2; bit && !err; bit /= 2)
		if (group->self + bit < group->nr)
			err = say(group, group->self + bit, true, words);
	for (uint32_t i = 0; i < group->nr && !err; i++)
		while (!err && muster_member_holds(group->parent, member_of(group, i)))
			err = wait_a_little(group, rank_of(group, i), &idle);
	muster_look_place(group->parent->job, MUSTER_LOOK_OUTSIDE);
	group->key++;	/* of the next agreement of the same members */
	return err;
}
